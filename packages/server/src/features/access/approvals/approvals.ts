import { derived, type Live } from '../../../kernel/config/live.ts';
import type { TurnOrigin } from '@gatehouse/contract';
import { announceAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { Log } from '../../../kernel/log.ts';
import { type CapabilityCheck, createToolGate, type ToolGate, type ToolGateDeps } from '../../../runtime/tool-gate.ts';
import { type AskDeps, createAsk } from './requests/ask.ts';
import { ClosedConversations } from './requests/closed-conversations.ts';
import type { ApprovalsConfig } from './config.ts';
import { systemDecider } from './deciders.ts';
import { createApprovalMethods, type ApprovalMethods } from './methods.ts';
import { compileRules } from './requests/rules.ts';
import { dropRequests, expireDue, isPending, listPending, type Made, type SuspendedTurn } from './store.ts';
import { createWaiting, type Outcome, type Watched } from './requests/waiting.ts';

export interface ApprovalsDeps extends AskDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Live<ApprovalsConfig>;
  readonly printKey: Parameters<typeof createApprovalMethods>[0]['printKey'];
  /** Called when the request of a suspended turn is decided, so that its work can continue. */
  readonly resume: (approvalId: string) => void;
  /** What turns may start, decided before any rule; absent: no check. */
  readonly capabilities?: { readonly check: CapabilityCheck; readonly insteadOfAsking: NonNullable<ToolGateDeps['insteadOfAsking']> } | undefined;
}

/** A run pending an approval. */
export interface ApprovalWaiting extends SuspendedTurn {
  readonly approvalId: string;
  readonly agentId: string;
  readonly conversationRef: string;
  readonly origin: TurnOrigin;
  readonly sinceMs: number;
  readonly untilMs: number;
}

export interface Approvals extends Disposable {
  readonly methods: ApprovalMethods;
  /** Decides about a request like `admin.approval.resolve`, for somebody in its chat who may; false when it was decided before. */
  decideInChat(decision: { readonly id: string; readonly approved: boolean; readonly by: string }, call: CallContext): Promise<boolean>;
  /** Checks each tool call before it runs. */
  readonly gate: ToolGate;
  /** Call when a daemon was claimed that died while this one runs. */
  recover(): Promise<void>;
  /** Lists runs pending an approval. */
  left(): readonly ApprovalWaiting[];
  /** Whether any call of a conversation waits. */
  isWaitingIn(conversationRef: string): boolean;
  /** Call when the work of a turn starts to wait; it is resumed at once when its request was decided meanwhile. */
  suspended(approvalId: string): Promise<void>;
  /** Denies the pending requests of stopped runs. With `resume: false` the caller ends their work. */
  drop(isMeant: (run: ApprovalWaiting) => boolean, how?: { readonly resume: boolean }): Promise<readonly ApprovalWaiting[]>;
  /** Whether a conversation is being cleared. */
  isClearing(conversationRef: string): boolean;
  /** Denies the pending requests of a conversation that is being cleared; until disposed, no call of its turns starts to wait. */
  clearing(conversationRef: string): Promise<Disposable>;
}

const timedOut: Outcome = { approved: false, by: systemDecider.timeout, reason: null };
const dropped: Outcome = { approved: false, by: systemDecider.dropped, reason: null };

/**
 * Decisions of people about exact calls of tools: each is stored before it is announced, is decided once, and is bound to a
 * digest of the whole call. Pending requests survive a restart; see also `ToolGate`.
 */
export async function createApprovals(deps: ApprovalsDeps): Promise<Approvals> {
  const { db, bus, clock, config } = deps;
  const waiting = createWaiting({ clock, onDue: (request) => void expire(request) });
  const closed = new ClosedConversations();

  function announceEnd(request: Watched, outcome: Outcome, resumes = true): void {
    waiting.settle(request.id, request.digest, outcome);
    if (request.turnJson !== null && resumes) deps.resume(request.id);
    bus.emit('approval:resolved', resolvedEvent(request, outcome, clock.now()));
    if (request.chatJson !== null) deps.chats?.confirm();
  }

  function announce({ decided, audits }: Made, { approved, by, reason }: Outcome, resumes = true): void {
    for (const audit of audits) announceAudit(bus, audit);
    for (const row of decided) announceEnd(row, { approved, by, reason }, resumes);
  }

  async function expire(request: Watched): Promise<void> {
    try {
      // A timer may fire a little early.
      announce(await db.write(expireDue, { atMs: clock.ageNow(), id: request.id }), timedOut);
    } catch (error) {
      deps.log.error({ err: error }, 'Failed to close an expired request for approval; it grants nothing');
    } finally {
      waiting.settle(request.id, request.digest, timedOut);
    }
  }

  /** Watches requests of daemons that died; their work is resumed by `suspended`. */
  async function recover(): Promise<void> {
    announce(await db.write(expireDue, { atMs: clock.ageNow() }), timedOut, false);
    const open = await db.read(listPending, { agentIds: null, atMs: clock.ageNow(), after: '', pageCharacters: Number.MAX_SAFE_INTEGER });
    for (const row of open.rows) if (!waiting.isWatched(row.id)) waiting.watch(row);
    // What ended while nobody was there to confirm it.
    deps.chats?.confirm();
  }
  await recover();

  // The rows were deleted with the conversation; their audience must learn that they are gone.
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

  const findRule = derived(config, ({ rules }) => compileRules(rules));
  const { methods, decideInChat } = createApprovalMethods({
    db,
    clock,
    hideSecrets: deps.hideSecrets,
    printKey: deps.printKey,
    onDecided: announce,
    onAudit: (audit) => announceAudit(bus, audit),
  });
  const ask = createAsk(deps, waiting, (ref) => closed.has(ref));
  return {
    gate: createToolGate(
      {
        findRule: (call) => findRule()(call),
        get mode() {
          return config.current.mode;
        },
        ask,
        ...(deps.capabilities !== undefined && { insteadOfAsking: deps.capabilities.insteadOfAsking }),
      },
      deps.capabilities?.check,
    ),
    methods,
    decideInChat,
    recover,
    left,
    isWaitingIn: (ref) => waiting.of(ref).length > 0,
    async suspended(approvalId) {
      // Work that is resumed for nothing waits again; a decision that is overlooked would come into effect at the end of the wait.
      if (!(await db.read(isPending, { id: approvalId }).catch(() => false))) deps.resume(approvalId);
    },
    drop,
    isClearing: (ref) => closed.has(ref),
    async clearing(ref) {
      const closing = closed.close(ref);
      try {
        await drop(({ conversationRef }) => conversationRef === ref);
        return closing;
      } catch (error) {
        closing[Symbol.dispose]();
        throw error;
      }
    },
    [Symbol.dispose]() {
      stopListening();
      waiting[Symbol.dispose]();
    },
  };
}

function resolvedEvent({ id, digest, agentId, conversationRef }: Watched, { approved, by, reason }: Outcome, atMs: number) {
  return {
    requestId: id,
    agentId,
    conversationRef,
    digest,
    approved,
    approvedBy: by,
    ...(reason !== null && { reason }),
    resolvedAt: atMs,
    timestamp: atMs,
  };
}

function leftRunOf({ id, agentId, conversationRef, origin, createdAtMs, expiresAtMs, turnJson }: Watched): ApprovalWaiting | undefined {
  if (turnJson === null) return undefined;
  // Written only by `createAsk`.
  const turn = parseJson(turnJson) as SuspendedTurn;
  return { ...turn, approvalId: id, agentId, conversationRef, origin, sinceMs: createdAtMs, untilMs: expiresAtMs };
}
