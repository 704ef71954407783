import { announceAudit } from '../../../../kernel/audit.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { type GateAnswer, type GatedCall, isUnattended } from '../../../../runtime/tool-gate.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { TurnInput } from '../../../../runtime/turn.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import type { ApprovalsConfig } from '../config.ts';
import { systemDecider } from '../deciders.ts';
import { canonicalJson, digestOf, freezeDeep, hideIn } from './exact-call.ts';
import { digestNamedFiles } from './named-files.ts';
import type { Asked, Asking, NewRequest, SuspendedTurn } from '../store.ts';
import type { Outcome, Waiting } from './waiting.ts';

export interface AskDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly config: ApprovalsConfig;
  /** Removes the live secrets of the installation. */
  readonly hideSecrets: (text: string) => string;
  /** `ask-approval.ts`: the request with the message that announces it. */
  readonly askApproval: Operation<Asking & { readonly inbox?: InboxMessage | undefined }, Asked>;
  /** `ask-approval.ts`: withdraws an unannounced request, with its message. */
  readonly withdrawApproval: Operation<{ readonly id: string; readonly opKey: string }, void>;
  readonly announceMessage: (message: InboxMessage) => void;
}

/** Longer arguments could not be shown whole to the decider. */
const maxParamsBytes = 64 * 1024;
const maxActionCharacters = 200;
const grantMs = 600_000;
/** Longer than any cache, so that late callers still find the decision. */
const keepMs = 2 * 3_600_000;
const bounds = { perAgent: 100, inAll: 1000 };

/**
 * Asks a person about exactly one call. An attended turn waits in memory, `approvals.timeoutMs` at most; the turn of durable
 * work is suspended, `approvals.unattendedTimeoutMs` at most, and asks again when it continues.
 */
export function createAsk(deps: AskDeps, waiting: Waiting, isClosed: (conversationRef: string) => boolean) {
  const { db, bus, clock, config } = deps;

  function announceRequest(request: NewRequest, params: unknown): void {
    const { id, tool, action, agentId, sessionKey, conversationRef, origin, trustLevel, digest, paramsBytes, reason, timeoutMs } = request;
    bus.emit('approval:requested', {
      requestId: id,
      toolName: tool,
      action,
      params,
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

  /** Returns why the call cannot be put to a person. */
  function refusalOf({ tool, turn, nested }: GatedCall, paramsBytes: number | undefined): string | undefined {
    if (paramsBytes === undefined) return `the arguments of "${tool.name}" cannot be shown to anybody who could approve them`;
    if (paramsBytes > maxParamsBytes)
      return `"${tool.name}" needs an approval, for which its arguments are too long (${paramsBytes} bytes of at most ${maxParamsBytes})`;
    if (turn.ledger === undefined) return undefined;
    if (nested === true) return `"${tool.name}" needs an approval, which a running tool cannot wait for; call "${tool.name}" itself`;
    return isClosed(turn.conversationRef) ? `"${tool.name}" needs an approval, and the conversation is being cleared` : undefined;
  }

  function requestOf(
    call: GatedCall,
    why: { readonly reason: string; readonly tainted: boolean },
    what: { files: string; bytes: number },
  ): NewRequest {
    const { tool, args, turn } = call;
    const { agentId, conversationRef, sessionKey, workspaceDir, origin, traceId } = turn;
    // A decision for a suspended turn is for that turn alone.
    const turnId = turn.ledger === undefined ? undefined : turn.turnId;
    const exact = { agentId, conversationRef, tool: tool.name, fingerprint: tool.fingerprint ?? '', args, workspaceDir, turnId };
    const left = suspendedTurnOf(turn, () => digestOf({ ...exact, files: '' }));
    // A temporarily wrong clock must not expire requests made under it, or before.
    const atMs = clock.ageNow();
    const timeoutMs = left === undefined ? config.timeoutMs : config.unattendedTimeoutMs;
    return {
      id: newId('ap'),
      digest: digestOf({ ...exact, files: what.files }),
      conversationRef,
      sessionKey,
      agentId,
      origin,
      traceId,
      tool: tool.name,
      action: oneLine(deps.hideSecrets(tool.describe?.(args) ?? tool.name)),
      reason: oneLine(deps.hideSecrets(why.reason)),
      trustLevel: why.tainted ? 'tainted' : 'clean',
      paramsJson: JSON.stringify(hideIn(args, deps.hideSecrets)),
      paramsBytes: what.bytes,
      createdAtMs: atMs,
      timeoutMs,
      expiresAtMs: atMs + timeoutMs,
      turnJson: left === undefined ? null : JSON.stringify(left),
    };
  }

  /** Undefined while the request is undecided. */
  function answerTo(asked: Asked, tool: Tool): GateAnswer | undefined {
    switch (asked.kind) {
      case 'allowed':
        announceAudit(bus, asked.audit);
        return { allowed: true };
      case 'denied':
        return answerOf({ approved: false, by: asked.by, reason: asked.reason }, tool.name);
      case 'full':
        return refused(`"${tool.name}" needs an approval, and too many calls wait for one (limit ${bounds[asked.limit]})`);
      case 'refused':
        return refused(`"${tool.name}" needs an approval, and unattended work may not wait for one (approvals.unattended: refuse)`);
      case 'changed':
        return refused(`${describeChange(tool)}, repeatedly`);
      case 'waits':
        return undefined;
    }
  }

  return async (call: GatedCall, why: { readonly reason: string; readonly tainted: boolean }): Promise<GateAnswer> => {
    const { tool, args, turn, signal } = call;
    const bytes = sizeOf(args);
    const refusal = refusalOf(call, bytes);
    if (refusal !== undefined) return refused(refusal);
    freezeDeep(args);
    const named = { tool, args, workspaceDir: turn.workspaceDir };
    const files = await digestNamedFiles(named);
    if (signal.aborted) return refused('the turn was stopped');
    const request = requestOf(call, why, { files, bytes: bytes ?? 0 });
    const { digest, turnJson } = request;
    const inbox = turnJson === null ? undefined : messageOf(request, turn);
    const { approvalCacheMs, denialCacheMs } = config;
    const isRefused = isUnattended(turn) && (turn.agent.approvals.unattended ?? config.unattended) === 'refuse';
    const asking = { request, inbox, bounds, approvalCacheMs, denialCacheMs, grantMs, keepMs, isRefused };
    // Starts before the row is written, so that no decision is missed.
    const waiter = turnJson === null ? waiting.wait(digest, signal) : undefined;
    try {
      const asked = await db.write(deps.askApproval, asking);
      const answer = answerTo(asked, tool);
      if (answer !== undefined || asked.kind !== 'waits') return answer ?? refused('it was not approved');
      // Stopped or cleared while the request was written: a later stop finds it among the watched requests, as it finds a call that joins one.
      if (turnJson !== null && (signal.aborted || isClosed(request.conversationRef))) {
        if (asked.isNew) await db.write(deps.withdrawApproval, { id: request.id, opKey: opKeyOf(request.id) });
        return refused('the turn was stopped, or its conversation cleared, before anybody decided');
      }
      if (asked.isNew) {
        waiting.watch(request);
        announceRequest(request, parseJson(request.paramsJson));
        if (inbox !== undefined) deps.announceMessage(inbox);
      }
      if (waiter === undefined) return { allowed: false, message: waits, waits: { approvalId: asked.requestId, untilMs: asked.expiresAtMs } };
      waiter.joins(asked.requestId);
      const decided = answerOf(await waiter.outcome, tool.name);
      if (decided.allowed && (await digestNamedFiles(named)) !== files) return refused(describeChange(tool));
      return decided;
    } finally {
      waiter?.leave();
    }
  };
}

function describeChange({ name, runsPrograms }: Tool): string {
  const what =
    runsPrograms === undefined ? `a file that this call of "${name}" names` : `a file of the workspace, which this call of "${name}" could read,`;
  return `${what} was changed while the call waited for its approval`;
}

const waits = 'Not run yet: the call waits for an approval';

function sizeOf(args: unknown): number | undefined {
  try {
    return Buffer.byteLength(canonicalJson(args));
  } catch {
    return undefined;
  }
}

/** Describes the turn of durable work; undefined for turns that live as long as their request. */
function suspendedTurnOf({ ledger, turnId, principalId, call }: TurnInput, callDigest: () => string): SuspendedTurn | undefined {
  if (ledger === undefined) return undefined;
  const { rootRunId = `root-turn-${turnId}`, run } = call.agentCaller?.turn ?? {};
  return {
    workId: ledger.workId,
    turnId,
    rootRunId,
    ...(run !== undefined && { runId: run.runId, leaseId: run.leaseId }),
    tokenId: call.identity.tokenId,
    principalId,
    startedAtMs: ledger.startedAtMs,
    callDigest: callDigest(),
  };
}

const opKeyOf = (requestId: string) => `approval:${requestId}`;

function messageOf({ id, agentId, conversationRef, action, reason, createdAtMs, expiresAtMs }: NewRequest, turn: TurnInput): InboxMessage {
  const until = `${new Date(expiresAtMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return {
    id: newId('in'),
    opKey: opKeyOf(id),
    digest: id,
    source: 'autonomy',
    agentId,
    conversationRef,
    principalId: turn.principalId,
    level: 'alert',
    text: `Agent ${agentId} waits for an approval (${turn.origin}): ${action}\n\nReason: ${reason}. Decide on the page Approvals, or with \`gatehouse approvals approve ${id}\` or \`deny ${id}\`. Without a decision by ${until} the call is denied, and the work continues without it.`,
    atMs: createdAtMs,
  };
}

function refused(why: string): GateAnswer {
  return { allowed: false, message: `Not run: ${why}`, unapproved: true };
}

function answerOf(outcome: Outcome | undefined, tool: string): GateAnswer {
  if (outcome === undefined) return refused('the turn was stopped while the call waited for its approval');
  if (outcome.approved) return { allowed: true };
  if (outcome.by === systemDecider.timeout) return refused(`nobody approved this call of "${tool}" in time`);
  if (outcome.by === systemDecider.dropped) return refused(`the wait for an approval of this call of "${tool}" was ended by a stop or a reset`);
  return refused(`this call of "${tool}" was denied${outcome.reason === null ? '' : `: ${outcome.reason}`}`);
}

/** People decide by this text: it must not be able to imitate something else. */
function oneLine(text: string): string {
  const line = text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();
  return line.length > maxActionCharacters ? `${line.slice(0, maxActionCharacters - 1).toWellFormed()}…` : line;
}
