import { announceAudit } from '../../../../kernel/audit.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { Log } from '../../../../kernel/log.ts';
import { type GateAnswer, type GatedCall, isUnattended } from '../../../../runtime/tool-gate.ts';
import type { ApprovalChats } from '../../../channels/approvals/api.ts';
import type { PartRow } from '../../../channels/delivery/api.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import { canonicalJson, freezeDeep } from './exact-call.ts';
import { answerOf, answerTo, bounds, describeChange, refused } from './gate-answers.ts';
import { digestNamedFiles } from './named-files.ts';
import { type AskReason, messageOf, opKeyOf, type RequestDeps, requestOf } from './new-request.ts';
import { type Asked, type Asking, leaveRequest, type NewRequest } from '../store.ts';
import type { Waiting } from './waiting.ts';

export interface AskDeps extends RequestDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly log: Log;
  /** Id of this run of the daemon. */
  readonly bootId: string;
  /** `ask-approval.ts`: the request with the message that announces it. */
  readonly askApproval: Operation<Asking & { readonly inbox?: InboxMessage | undefined; readonly question?: readonly PartRow[] | undefined }, Asked>;
  /** `ask-approval.ts`: withdraws an unannounced request, with its message. */
  readonly withdrawApproval: Operation<{ readonly id: string; readonly opKey: string }, void>;
  readonly announceMessage: (message: InboxMessage) => void;
  /** Asks in chats; absent in tests. */
  readonly chats?: ApprovalChats | undefined;
}

/** Longer arguments could not be shown whole to the decider. */
const maxParamsBytes = 64 * 1024;
const grantMs = 600_000;
/** Longer than any cache, so that late callers still find the decision. */
const keepMs = 2 * 3_600_000;
const waits = 'Not run yet: the call waits for an approval';

/**
 * Asks a person about exactly one call. An attended turn waits in memory, `approvals.timeoutMs` at most; the turn of durable
 * work is suspended, `approvals.unattendedTimeoutMs` at most, and asks again when it continues.
 */
export function createAsk(deps: AskDeps, waiting: Waiting, isClosed: (conversationRef: string) => boolean) {
  const { db, bus, config } = deps;

  return async (call: GatedCall, why: AskReason): Promise<GateAnswer> => {
    const { tool, args, turn, signal } = call;
    const bytes = sizeOf(args);
    const refusal = refusalOf(call, bytes, isClosed);
    if (refusal !== undefined) return refused(refusal);
    freezeDeep(args);
    const named = { tool, args, workspaceDir: turn.workspaceDir };
    const files = await digestNamedFiles(named);
    if (signal.aborted) return refused('the turn was stopped');
    const request = requestOf(deps, call, { ...why, files, bytes: bytes ?? 0 });
    const { digest, turnJson } = request;
    const inbox = turnJson === null ? undefined : messageOf(request, turn);
    const question = await deps.chats?.ask(request);
    const { approvalCacheMs, denialCacheMs, unattended } = config.current;
    const isRefused = isUnattended(turn) && (turn.agent.approvals.unattended ?? unattended) === 'refuse';
    const asking = {
      request,
      inbox,
      question,
      bounds,
      approvalCacheMs,
      denialCacheMs,
      grantMs,
      keepMs,
      isRefused,
      waitsAt: turnJson === null ? deps.bootId : '',
    };
    // Starts before the row is written, so that no decision is missed.
    const waiter = turnJson === null ? waiting.wait(digest, signal) : undefined;
    try {
      const asked = await db.write(deps.askApproval, asking);
      if (asked.kind === 'allowed') announceAudit(bus, asked.audit);
      if (asked.kind !== 'waits') return answerTo(asked, tool);
      // Stopped or cleared while the request was written: a later stop finds it among the watched requests, as it finds a call that joins one.
      if (turnJson !== null && (signal.aborted || isClosed(request.conversationRef))) {
        if (asked.isNew) await db.write(deps.withdrawApproval, { id: request.id, opKey: opKeyOf(request.id) });
        return refused('the turn was stopped, or its conversation cleared, before anybody decided');
      }
      if (asked.isNew) {
        waiting.watch(request);
        announceRequest(bus, request);
        if (inbox !== undefined) deps.announceMessage(inbox);
        if (question !== undefined) deps.chats?.wake(question);
      }
      if (waiter === undefined) return { allowed: false, message: waits, waits: { approvalId: asked.requestId, untilMs: asked.expiresAtMs } };
      waiter.joins(asked.requestId);
      const outcome = await waiter.outcome;
      // A decision that nobody waits for is granted for the next equal call.
      if (outcome === undefined && !waiting.isWaited(digest))
        void db
          .write(leaveRequest, { id: asked.requestId, waitsAt: deps.bootId })
          .catch((error: unknown) => deps.log.warn({ err: error }, 'Failed to record that nobody waits for an approval any more'));
      const decided = answerOf(outcome, tool.name);
      if (decided.allowed && (await digestNamedFiles(named)) !== files) return refused(describeChange(tool));
      return decided;
    } finally {
      waiter?.leave();
    }
  };
}

/** Returns why the call cannot be put to a person. */
function refusalOf(
  { tool, turn, nested }: GatedCall,
  paramsBytes: number | undefined,
  isClosed: (conversationRef: string) => boolean,
): string | undefined {
  if (paramsBytes === undefined) return `the arguments of "${tool.name}" cannot be shown to anybody who could approve them`;
  if (paramsBytes > maxParamsBytes)
    return `"${tool.name}" needs an approval, for which its arguments are too long (${paramsBytes} bytes of at most ${maxParamsBytes})`;
  if (turn.ledger === undefined) return undefined;
  if (nested === true) return `"${tool.name}" needs an approval, which a running tool cannot wait for; call "${tool.name}" itself`;
  return isClosed(turn.conversationRef) ? `"${tool.name}" needs an approval, and the conversation is being cleared` : undefined;
}

function announceRequest(bus: EventBus, request: NewRequest): void {
  const { id, tool, action, agentId, sessionKey, conversationRef, origin, trustLevel, digest, paramsBytes, reason, timeoutMs } = request;
  bus.emit('approval:requested', {
    requestId: id,
    toolName: tool,
    action,
    params: parseJson(request.paramsJson),
    paramsBytes,
    digest,
    reason,
    agentId,
    sessionKey,
    conversationRef,
    origin,
    trustLevel,
    createdAt: request.createdAtMs,
    timeoutMs,
    timestamp: request.createdAtMs,
  });
}

function sizeOf(args: unknown): number | undefined {
  try {
    return Buffer.byteLength(canonicalJson(args));
  } catch {
    return undefined;
  }
}
