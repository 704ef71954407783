import { announceAudit } from '../../kernel/audit.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Db } from '../../kernel/db/db.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import { newId } from '../../kernel/ids.ts';
import type { Log } from '../../kernel/log.ts';
import { type CapabilityCheck, createToolGate, type GateAnswer, type GatedCall, type ToolGate, type ToolGateDeps } from '../../runtime/tool-gate.ts';
import type { ApprovalsConfig } from './config.ts';
import { systemDecider } from './deciders.ts';
import { canonicalJson, digestOf, freezeDeep, hideIn } from './exact-call.ts';
import { digestNamedFiles } from './named-files.ts';
import { createApprovalMethods, type ApprovalMethods } from './methods.ts';
import { compileRules } from './rules.ts';
import { askForCall, type Asking, expireDue, listPending, type Made, type NewRequest } from './store.ts';
import { createWaiting, type Outcome, type Watched } from './waiting.ts';

export interface ApprovalsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: ApprovalsConfig;
  /** Takes the live secrets of the installation out. */
  readonly hideSecrets: (text: string) => string;
  readonly printKey: Parameters<typeof createApprovalMethods>[0]['printKey'];
  /** What turns may set going, decided before any rule; nothing is asked where absent. */
  readonly capabilities?: { readonly check: CapabilityCheck; readonly insteadOfAsking: NonNullable<ToolGateDeps['insteadOfAsking']> } | undefined;
}

export interface Approvals extends Disposable {
  readonly methods: ApprovalMethods;
  /** Stands before each call of a tool. */
  readonly gate: ToolGate;
}

/** Longer arguments could not be shown whole to whoever decides. */
const maxParamsBytes = 64 * 1024;
const maxActionCharacters = 200;
const grantMs = 600_000;
/** Longer than any cache, so that what was decided is still known to those who come late. */
const keepMs = 2 * 3_600_000;
const timedOut: Outcome = { approved: false, by: systemDecider.timeout, reason: null };
const bounds = { perAgent: 100, inAll: 1000 };

/**
 * Decisions of people about exact calls of tools: each is a row before anybody is told of it, is decided once, and is bound to a
 * digest of all that the call is. What waits survives a restart; see also `ToolGate`.
 */
export async function createApprovals(deps: ApprovalsDeps): Promise<Approvals> {
  const { db, bus, clock, config } = deps;
  const waiting = createWaiting({ clock, onDue: (request) => void expire(request) });

  function announceEnd({ id, digest, agentId, conversationRef }: Omit<Watched, 'expiresAtMs'>, { approved, by, reason }: Outcome): void {
    waiting.settle(id, digest, { approved, by, reason });
    const atMs = clock.now();
    bus.emit('approval:resolved', {
      requestId: id,
      agentId,
      conversationRef,
      digest,
      approved,
      approvedBy: by,
      ...(reason !== null && { reason }),
      resolvedAt: atMs,
      timestamp: atMs,
    });
  }

  function announce({ decided, audits }: Made, outcome: Outcome): void {
    for (const audit of audits) announceAudit(bus, audit);
    for (const row of decided) announceEnd(row, outcome);
  }

  async function expire(request: Watched): Promise<void> {
    try {
      // A timer may fire a little before its time.
      announce(await db.write(expireDue, { atMs: Math.max(clock.now(), request.expiresAtMs) }), timedOut);
    } catch (error) {
      deps.log.error({ err: error }, 'A request for approval whose time is over could not be closed; nothing is approved by that');
    } finally {
      waiting.settle(request.id, request.digest, timedOut);
    }
  }

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

  async function ask(call: GatedCall, why: { readonly reason: string; readonly tainted: boolean }): Promise<GateAnswer> {
    const { tool, args, turn, signal } = call;
    let text: string;
    try {
      text = canonicalJson(args);
    } catch {
      return refused(`the arguments of "${tool.name}" cannot be shown to anybody who could approve them`);
    }
    const paramsBytes = Buffer.byteLength(text);
    if (paramsBytes > maxParamsBytes)
      return refused(`"${tool.name}" needs an approval, for which its arguments are too long (${paramsBytes} bytes of at most ${maxParamsBytes})`);
    freezeDeep(args);
    const files = await digestNamedFiles(args, turn.workspaceDir);
    const { agentId, conversationRef, sessionKey, workspaceDir, origin, traceId } = turn;
    const digest = digestOf({ agentId, conversationRef, tool: tool.name, fingerprint: tool.fingerprint ?? '', args, workspaceDir, files });
    const params = hideIn(args, deps.hideSecrets);
    const atMs = clock.now();
    const request: NewRequest = {
      id: newId('ap'),
      digest,
      conversationRef,
      sessionKey,
      agentId,
      origin,
      traceId,
      tool: tool.name,
      action: oneLine(deps.hideSecrets(tool.describe?.(args) ?? tool.name)),
      reason: oneLine(deps.hideSecrets(why.reason)),
      trustLevel: why.tainted ? 'tainted' : 'clean',
      paramsJson: JSON.stringify(params),
      paramsBytes,
      createdAtMs: atMs,
      timeoutMs: config.timeoutMs,
      expiresAtMs: atMs + config.timeoutMs,
    };
    const { approvalCacheMs, denialCacheMs } = config;
    const asking: Asking = { request, bounds, approvalCacheMs, denialCacheMs, grantMs, keepMs };
    const waiter = waiting.wait(digest, signal);
    try {
      const asked = await db.write(askForCall, asking);
      if (asked.kind === 'allowed') {
        announceAudit(bus, asked.audit);
        return { allowed: true };
      }
      if (asked.kind === 'denied') return refused(`this call of "${tool.name}" was denied${asked.reason === null ? '' : `: ${asked.reason}`}`);
      if (asked.kind === 'full') return refused(`"${tool.name}" needs an approval, and too many calls wait for one (limit ${bounds[asked.limit]})`);
      if (asked.isNew) {
        waiting.watch({ id: request.id, digest, agentId: call.turn.agentId, conversationRef, expiresAtMs: request.expiresAtMs });
        announceRequest(request, params);
      }
      waiter.joins(asked.requestId);
      const answer = answerOf(await waiter.outcome, tool.name);
      if (answer.allowed && (await digestNamedFiles(args, workspaceDir)) !== files)
        return refused(`a file that this call of "${tool.name}" names was changed while the call waited for its approval`);
      return answer;
    } finally {
      waiter.leave();
    }
  }

  // What an earlier run left waiting.
  announce(await db.write(expireDue, { atMs: clock.now() }), timedOut);
  const open = await db.read(listPending, { agentIds: null, atMs: clock.now(), after: '', pageCharacters: Number.MAX_SAFE_INTEGER });
  for (const row of open.rows) waiting.watch(row);

  // The rows went with the reset or the deletion; who was told of them hears that they are gone.
  const stopListening = bus.listen(['session:expired'], ({ payload }) => {
    if (!('conversationRef' in payload)) return;
    for (const request of waiting.of(String(payload.conversationRef)))
      announceEnd(request, { approved: false, by: systemDecider.dropped, reason: null });
  });

  return {
    gate: createToolGate(
      {
        findRule: compileRules(config.rules),
        mode: config.mode,
        ask,
        ...(deps.capabilities !== undefined && { insteadOfAsking: deps.capabilities.insteadOfAsking }),
      },
      deps.capabilities?.check,
    ),
    methods: createApprovalMethods({
      db,
      clock,
      hideSecrets: deps.hideSecrets,
      printKey: deps.printKey,
      waited: waiting.digests,
      onDecided: announce,
      onAudit: (audit) => announceAudit(bus, audit),
    }),
    [Symbol.dispose]() {
      stopListening();
      waiting[Symbol.dispose]();
    },
  };
}

function refused(why: string): GateAnswer {
  return { allowed: false, message: `Not run: ${why}` };
}

function answerOf(outcome: Outcome | undefined, tool: string): GateAnswer {
  if (outcome === undefined) return refused('the turn was stopped while the call waited for its approval');
  if (outcome.approved) return { allowed: true };
  if (outcome.by === systemDecider.timeout) return refused(`nobody approved this call of "${tool}" in time`);
  return refused(`this call of "${tool}" was denied${outcome.reason === null ? '' : `: ${outcome.reason}`}`);
}

/** People decide by it: it must not be able to look like something else. */
function oneLine(text: string): string {
  const line = text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();
  return line.length > maxActionCharacters ? `${line.slice(0, maxActionCharacters - 1).toWellFormed()}…` : line;
}
