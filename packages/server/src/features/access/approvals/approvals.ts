import type { TurnOrigin } from '@gatehouse/contract';
import { announceAudit } from '../../../kernel/audit.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { Log } from '../../../kernel/log.ts';
import { type CapabilityCheck, createToolGate, type ToolGate, type ToolGateDeps } from '../../../runtime/tool-gate.ts';
import { type AskDeps, createAsk } from './requests/ask.ts';
import type { ApprovalsConfig } from './config.ts';
import { systemDecider } from './deciders.ts';
import { createApprovalMethods, type ApprovalMethods } from './methods.ts';
import { compileRules } from './requests/rules.ts';
import { dropRequests, expireDue, isPending, type LeftTurn, listPending, type Made } from './store.ts';
import { createWaiting, type Outcome, type Watched } from './requests/waiting.ts';

export interface ApprovalsDeps extends AskDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: ApprovalsConfig;
  readonly printKey: Parameters<typeof createApprovalMethods>[0]['printKey'];
  /** The work of a left turn may continue: its request is decided. */
  readonly resume: (approvalId: string) => void;
  /** What turns may set going, decided before any rule; nothing is asked where absent. */
  readonly capabilities?: { readonly check: CapabilityCheck; readonly insteadOfAsking: NonNullable<ToolGateDeps['insteadOfAsking']> } | undefined;
}

/** A run that waits for an approval. */
export interface ApprovalWaiting extends LeftTurn {
  readonly approvalId: string;
  readonly agentId: string;
  readonly conversationRef: string;
  readonly origin: TurnOrigin;
  readonly sinceMs: number;
  readonly untilMs: number;
}

export interface Approvals extends Disposable {
  readonly methods: ApprovalMethods;
  /** Stands before each call of a tool. */
  readonly gate: ToolGate;
  /** Runs that wait. */
  left(): readonly ApprovalWaiting[];
  /** Whether any call of a conversation waits. */
  isWaitingIn(conversationRef: string): boolean;
  /** The work of a turn waits from here on; it is resumed at once when its request was decided meanwhile. */
  suspended(approvalId: string): Promise<void>;
  /** Ends the waits of runs that are stopped, as denied. With `resume: false` their work is ended by whoever stops them. */
  drop(isMeant: (run: ApprovalWaiting) => boolean, how?: { readonly resume: boolean }): Promise<readonly ApprovalWaiting[]>;
  /** Ends the waits of a conversation that is to be cleared, as denied; until it is disposed of, no call of its turns begins to wait. */
  clearing(conversationRef: string): Promise<Disposable>;
}

const timedOut: Outcome = { approved: false, by: systemDecider.timeout, reason: null };
const dropped: Outcome = { approved: false, by: systemDecider.dropped, reason: null };

/**
 * Decisions of people about exact calls of tools: each is a row before anybody is told of it, is decided once, and is bound to a
 * digest of all that the call is. What waits survives a restart; see also `ToolGate`.
 */
export async function createApprovals(deps: ApprovalsDeps): Promise<Approvals> {
  const { db, bus, clock, config } = deps;
  const waiting = createWaiting({ clock, onDue: (request) => void expire(request) });
  /** Conversations that are being cleared, and how often. */
  const closed = new Map<string, number>();

  function announceEnd({ id, digest, agentId, conversationRef, turnJson }: Watched, outcome: Outcome, resumes = true): void {
    const { approved, by, reason } = outcome;
    waiting.settle(id, digest, outcome);
    if (turnJson !== null && resumes) deps.resume(id);
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

  function announce({ decided, audits }: Made, { approved, by, reason }: Outcome, resumes = true): void {
    for (const audit of audits) announceAudit(bus, audit);
    for (const row of decided) announceEnd(row, { approved, by, reason }, resumes);
  }

  async function expire(request: Watched): Promise<void> {
    try {
      // A timer may fire a little before its time.
      announce(await db.write(expireDue, { atMs: clock.ageNow(), id: request.id }), timedOut);
    } catch (error) {
      deps.log.error({ err: error }, 'A request for approval whose time is over could not be closed; nothing is approved by that');
    } finally {
      waiting.settle(request.id, request.digest, timedOut);
    }
  }

  // What an earlier run left waiting; work is resumed by `suspended`, once there is work.
  announce(await db.write(expireDue, { atMs: clock.ageNow() }), timedOut, false);
  const open = await db.read(listPending, { agentIds: null, atMs: clock.ageNow(), after: '', pageCharacters: Number.MAX_SAFE_INTEGER });
  for (const row of open.rows) waiting.watch(row);

  // The rows went with the reset or the deletion; who was told of them hears that they are gone.
  const stopListening = bus.listen(['session:expired'], ({ payload }) => {
    if (!('conversationRef' in payload)) return;
    for (const request of waiting.of(String(payload.conversationRef))) if (request.turnJson === null) announceEnd(request, dropped);
  });

  const left = () => waiting.all().flatMap((request) => leftRunOf(request) ?? []);

  async function drop(isMeant: (run: ApprovalWaiting) => boolean, { resume } = { resume: true }): Promise<readonly ApprovalWaiting[]> {
    const meant = left().filter(isMeant);
    const ids = meant.map(({ approvalId }) => approvalId);
    if (ids.length > 0) announce(await db.write(dropRequests, { ids, atMs: clock.ageNow() }), dropped, resume);
    return meant;
  }

  const ask = createAsk(deps, waiting, (ref) => closed.has(ref));
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
    left,
    isWaitingIn: (ref) => waiting.of(ref).length > 0,
    async suspended(approvalId) {
      if (!(await db.read(isPending, { id: approvalId }))) deps.resume(approvalId);
    },
    drop,
    async clearing(ref) {
      closed.set(ref, (closed.get(ref) ?? 0) + 1);
      const open = {
        [Symbol.dispose]() {
          const others = (closed.get(ref) ?? 1) - 1;
          if (others === 0) closed.delete(ref);
          else closed.set(ref, others);
        },
      };
      try {
        await drop(({ conversationRef }) => conversationRef === ref);
        return open;
      } catch (error) {
        open[Symbol.dispose]();
        throw error;
      }
    },
    [Symbol.dispose]() {
      stopListening();
      waiting[Symbol.dispose]();
    },
  };
}

function leftRunOf({ id, agentId, conversationRef, origin, createdAtMs, expiresAtMs, turnJson }: Watched): ApprovalWaiting | undefined {
  if (turnJson === null) return undefined;
  // Written by `createAsk` alone.
  const turn = parseJson(turnJson) as LeftTurn;
  return { ...turn, approvalId: id, agentId, conversationRef, origin, sinceMs: createdAtMs, untilMs: expiresAtMs };
}
