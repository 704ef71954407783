import { ToolPolicy } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { type Identity, type IdentityOf, isForOwners, type ToolBounds } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { type Operation, toCall } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { DurableWork, WorkClaim, WorkItem, WorkOutcome } from '../../unattended/durable/api.ts';
import type { EndpointsApi } from '../../channels/delivery/api.ts';
import type { InboxApi, InboxMessage } from '../../unattended/inbox/api.ts';
import type { TurnOutcome, TurnsApi, TurnSettlement } from '../../conversations/turns/api.ts';
import type { SendProgress, SendRow, SendState } from './api.ts';
import { askedOf, callOf, chatOf, failedNote, sidesOf } from './exchange.ts';
import { endOf, errorKindOf, progressOf } from './progress.ts';
import { failSend, findSend, openSends, type SendFailure } from './store.ts';
import type { Waiting } from './waiting.ts';

export interface AnswerDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly turns: Pick<TurnsApi, 'runDurably'>;
  readonly inbox: Pick<InboxApi, 'announce'>;
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  /** Returns the current identity of a token; undefined when the token is gone. */
  readonly identityOf: IdentityOf;
  readonly waiting: Waiting;
  readonly durable: Pick<DurableWork, 'waitFor'>;
  /** Returns false once the root run of a message was stopped or has used up its budget. */
  readonly mayContinue: (rootRunId: string) => boolean;
  /** Called when work was accepted. */
  readonly wake: () => void;
  /** Returns whether turns of one of these conversations ever read text from outside. */
  readonly isTainted: (refs: readonly string[]) => Promise<boolean>;
  /** Defined in `send-work.ts`; commits with the turn of the answer. */
  readonly keepAnswer: Operation<SendProgress, void>;
  /** Defined in `send-work.ts`; false when another process holds the claim. */
  readonly failSendWork: Operation<SendFailure & { readonly claim: WorkClaim; readonly inbox?: InboxMessage }, boolean>;
}

export const sendLimits = { concurrency: 64, maxAttempts: 5 };

const Payload = z.strictObject({ sendId: z.string(), leg: z.int().min(0) });
const Bounds: z.ZodType<ToolBounds> = z.strictObject({ policies: z.array(ToolPolicy), agents: z.array(z.string()) });
/** Returns 10 s, 20 s, 40 s, 80 s. */
const waitMs = ({ attempts }: WorkItem) => 10_000 * 2 ** (attempts - 1);

/** A message whose next answer is due, with the work item of that answer. */
interface DueAnswer {
  readonly send: SendRow & SendState;
  readonly leg: number;
  readonly item: WorkItem;
  /** Whether nothing that it answers came from outside. */
  readonly clean: boolean;
}

/** Runs the turns that answer messages, each as durable work, and ends each message exactly once. */
export class Answers {
  readonly #deps: AnswerDeps;

  constructor(deps: AnswerDeps) {
    this.#deps = deps;
  }

  /** Executes the work item of one answer. */
  async handle(item: WorkItem, signal: AbortSignal): Promise<WorkOutcome> {
    const { db } = this.#deps;
    const { sendId, leg } = Payload.parse(item.payload);
    const send = await db.read(findSend, { id: sendId });
    // It was ended in the meantime by a kill or a deletion.
    if (send?.state !== 'open') return this.#endedElsewhere(sendId, send);
    if (send.leg !== leg) return { state: 'aborted', errorKind: 'ended' };
    const identity = this.#identityOf(send);
    if (identity === undefined) return this.#fail(item, sendId, 'token_gone');
    if (send.rootRunId !== null && !this.#deps.mayContinue(send.rootRunId)) return this.#fail(item, sendId, 'revoked');
    const before = leg === 0 ? undefined : sidesOf(send, leg).there?.ref;
    const clean = before === undefined ? !send.tainted : !(await this.#deps.isTainted([before]));
    try {
      await this.#answer({ send, leg, item, clean }, identity, signal);
      return 'settled';
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const now = await db.read(findSend, { id: sendId });
      if (now?.state !== 'open') return this.#endedElsewhere(sendId, now);
      if (signal.aborted) throw error;
      if (error.code === 'not_found') {
        await this.gaveUp(item, error.code, error.message);
        return 'settled';
      }
      if (!this.#deps.waiting.has(sendId)) return { retryAfterMs: waitMs(item), errorKind: error.code };
      return this.#fail(item, sendId, error.code);
    }
  }

  async #answer(due: DueAnswer, identity: Identity, signal: AbortSignal): Promise<void> {
    const { send, leg, item, clean } = due;
    const { id: workId, owner, fence } = item;
    let kept: SendProgress | undefined;
    const outcome = await this.#deps.turns.runDurably(
      {
        workId,
        owner,
        fence,
        ...askedOf(send, leg, clean),
        // Approvals of a token's turn are not asked of those who are in the chat.
        ...(send.byAgent && { authority: send.authority, endpoint: chatOf(send) }),
        target: sidesOf(send, leg).here,
        ...(send.rootRunId !== null && { rootRunId: send.rootRunId }),
        ...(send.boundsJson !== null && { toolBounds: Bounds.parse(parseJson(send.boundsJson)) }),
        kept: true,
        operation: 'interactive',
        settle: (ended) => this.#settle(due, ended, (progress) => (kept = progress)),
      },
      callOf(send, identity, workId, signal),
    );
    if (outcome.settled && kept !== undefined) this.#publish(due, kept);
  }

  #settle({ send, leg, item }: DueAnswer, outcome: TurnOutcome, keep: (progress: SendProgress) => SendProgress): TurnSettlement {
    const isAwaited = this.#deps.waiting.has(send.id);
    // A waiting caller gets the failure at once.
    const wait = isAwaited ? undefined : this.#deps.durable.waitFor(item, outcome);
    if (wait !== undefined) return wait;
    const errorKind = errorKindOf(outcome);
    const how = { isAwaited, cause: this.#causeOf(send, outcome), atMs: this.#deps.clock.now() };
    const progress = keep(progressOf(send, leg, outcome, how, this.#deps.endpoints.address));
    const state = errorKind === undefined ? 'done' : outcome.finishReason === 'aborted' ? 'aborted' : 'failed';
    return { state, ...(errorKind !== undefined && { errorKind }), alongside: [toCall(this.#deps.keepAnswer, progress)] };
  }

  #publish({ send, leg }: DueAnswer, progress: SendProgress): void {
    const { bus, clock, waiting, wake } = this.#deps;
    const { here, there } = sidesOf(send, leg);
    if (leg > 0 && progress.errorKind === null && there !== undefined)
      bus.emit(
        'session:ping_pong_turn',
        {
          fromRef: here.ref,
          toRef: there.ref,
          agentId: here.agentId,
          turnNumber: leg,
          totalTurns: send.maxTurns,
          tokensUsed: progress.tokens,
          timestamp: clock.now(),
        },
        here.principalId,
      );
    if (progress.next !== undefined) return wake();
    this.#announceInbox(progress.inbox);
    waiting.end(send.id, endOf(send, leg, progress));
  }

  /** Turns of webhooks, jobs and heartbeats act for principals that have no token. */
  #identityOf({ tokenId, principalId, toAgentId }: SendRow): Identity | undefined {
    const own = tokenId === principalId ? { principalId, tokenId, scopes: [], agents: [toAgentId] } : undefined;
    return this.#deps.identityOf(tokenId, principalId) ?? own;
  }

  #causeOf(send: SendRow, { failure }: TurnOutcome): string {
    return (this.#isForOwners(send) ? failure?.cause : undefined) ?? failure?.message ?? 'its turn failed';
  }

  /** Whether causes may be in the note about a failure; everybody in a chat reads it. */
  #isForOwners(send: SendRow): boolean {
    return (!send.byAgent || send.chatJson === null) && isForOwners(this.#identityOf(send));
  }

  #endedElsewhere(sendId: string, send: SendState | undefined): WorkOutcome {
    const errorKind = send?.errorKind ?? 'ended';
    this.#endWait(sendId, errorKind);
    return { state: 'aborted', errorKind };
  }

  async #fail({ id, owner, fence }: WorkItem, sendId: string, errorKind: string, inbox?: InboxMessage): Promise<'settled'> {
    const { db, clock, failSendWork } = this.#deps;
    const note = inbox === undefined ? {} : { inbox };
    const isMine = await db.write(failSendWork, { claim: { id, owner, fence }, id: sendId, errorKind, ...note, atMs: clock.now() });
    if (!isMine) return 'settled';
    this.#endWait(sendId, errorKind);
    this.#announceInbox(inbox);
    return 'settled';
  }

  #endWait(sendId: string, errorKind: string): void {
    this.#deps.waiting.end(sendId, { response: null, errorKind, announced: false, turnsCompleted: 0, tokens: 0, costNano: 0 });
  }

  #announceInbox(message: InboxMessage | undefined): void {
    if (message !== undefined) this.#deps.inbox.announce(message);
  }

  /** Ends the open messages of a root run; their turns end with it. */
  async stop(rootRunId: string): Promise<number> {
    const { db, clock } = this.#deps;
    const ids = await db.read(openSends, { rootRunId });
    for (const id of ids) {
      await db.write(failSend, { id, errorKind: 'killed', atMs: clock.now() });
      this.#endWait(id, 'killed');
    }
    return ids.length;
  }

  /** Ends awaited messages to a deleted conversation, including those whose work has not been claimed yet. */
  async conversationDeleted(ref: string): Promise<void> {
    const { db, clock, waiting } = this.#deps;
    for (const id of waiting.to(ref)) {
      this.#endWait(id, 'deleted');
      await db.write(failSend, { id, errorKind: 'deleted', atMs: clock.now() });
    }
  }

  /** Records that the work of an answer was given up. */
  async gaveUp(item: WorkItem, errorKind: string, cause: string): Promise<void> {
    const { db, clock, waiting } = this.#deps;
    const { sendId } = Payload.parse(item.payload);
    const send = await db.read(findSend, { id: sendId });
    // A waiting caller is notified directly, and the caller that deleted the conversation knows.
    const needsNoNote = waiting.has(sendId) || errorKind === 'deleted' || send?.state !== 'open';
    const why = (of: SendRow) => (this.#isForOwners(of) ? cause : errorKind);
    await this.#fail(item, sendId, errorKind, needsNoNote ? undefined : failedNote(send, why(send), clock.now(), this.#deps.endpoints.address));
  }
}
