import { ToolPolicy } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { type Identity, isForOwners, type ToolBounds } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { DurableWork, WorkClaim, WorkHandler, WorkItem, WorkLimits, WorkOutcome } from '../../unattended/durable/api.ts';
import type { InboxApi, InboxMessage } from '../../unattended/inbox/api.ts';
import type { DurableTurn, TurnOutcome, TurnsApi } from '../../conversations/turns/api.ts';
import type { SendProgress, SendRow, SendState } from './api.ts';
import { askedOf, bound, callOf, failedNote, hasNextAnswer, inboxOf, sidesOf, workOf } from './exchange.ts';
import { failSend, findSend, openSends, type SendFailure } from './store.ts';
import type { Waiting } from './waiting.ts';

export interface AnswerDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly turns: Pick<TurnsApi, 'durable'>;
  readonly inbox: Pick<InboxApi, 'announce'>;
  /** Returns the current identity of a token; undefined when the token is gone. */
  readonly identityOf: (tokenId: string) => Identity | undefined;
  readonly waiting: Waiting;
  readonly durable: Pick<DurableWork, 'waitFor'>;
  /** Returns false once the root run of a message was stopped or has used up its budget. */
  readonly mayContinue: (rootRunId: string) => boolean;
  /** Called when work was accepted. */
  readonly wake: () => void;
  /** Returns whether turns of one of these conversations ever read text from outside. */
  readonly isTainted: (refs: readonly string[]) => Promise<boolean>;
  /** Defined in `send-work.ts`; false when another process holds the claim. */
  readonly failSendWork: Operation<SendFailure & { readonly claim: WorkClaim; readonly inbox?: InboxMessage }, boolean>;
}

export const sendLimits = { concurrency: 64, maxAttempts: 5 };

const Payload = z.strictObject({ sendId: z.string(), leg: z.int().min(0) });
const Bounds: z.ZodType<ToolBounds> = z.strictObject({ policies: z.array(ToolPolicy), agents: z.array(z.string()) });
/** Returns 10 s, 20 s, 40 s, 80 s. */
const waitMs = ({ attempts }: WorkItem) => 10_000 * 2 ** (attempts - 1);

const errorKindOf = ({ failure, finishReason }: TurnOutcome): string | undefined =>
  failure?.kind ?? (finishReason === 'aborted' ? 'aborted' : undefined);

export interface Answer {
  readonly run: WorkHandler;
  readonly gaveUp: NonNullable<WorkLimits['gaveUp']>;
  /** Ends the open messages of a root run; their turns end with it. */
  stop(rootRunId: string): Promise<number>;
  /** Ends awaited messages to a deleted conversation, including those whose work has not been claimed yet. */
  conversationDeleted(ref: string): Promise<void>;
}

/** Runs the turns that answer a message, each as durable work, and ends the message exactly once. */
export function createAnswer(deps: AnswerDeps): Answer {
  const { db, bus, clock, waiting } = deps;

  const endWaitAsFailed = (sendId: string, errorKind: string): void =>
    waiting.end(sendId, { response: null, errorKind, announced: false, turnsCompleted: 0, tokens: 0, costNano: 0 });

  function endedElsewhere(sendId: string, send: SendState | undefined): WorkOutcome {
    const errorKind = send?.errorKind ?? 'ended';
    endWaitAsFailed(sendId, errorKind);
    return { state: 'aborted', errorKind };
  }

  async function fail({ id, owner, fence }: WorkItem, sendId: string, errorKind: string, inbox?: InboxMessage): Promise<'settled'> {
    const note = inbox === undefined ? {} : { inbox };
    const isMine = await db.write(deps.failSendWork, { claim: { id, owner, fence }, id: sendId, errorKind, ...note, atMs: clock.now() });
    if (!isMine) return 'settled';
    endWaitAsFailed(sendId, errorKind);
    announceInbox(inbox);
    return 'settled';
  }

  /** Turns of webhooks, jobs and heartbeats act for principals that have no token. */
  function identityOf({ tokenId, principalId, toAgentId }: SendRow): Identity | undefined {
    return deps.identityOf(tokenId) ?? (tokenId === principalId ? { principalId, tokenId, scopes: [], agents: [toAgentId] } : undefined);
  }

  const causeOf = (send: SendRow, { failure }: TurnOutcome): string =>
    (isForOwners(identityOf(send)) ? failure?.cause : undefined) ?? failure?.message ?? 'its turn failed';

  /** Returns the progress of the message after this answer. */
  function progressOf(send: SendRow & SendState, leg: number, outcome: TurnOutcome): SendProgress {
    const atMs = clock.now();
    const response = bound(outcome.text);
    const errorKind = errorKindOf(outcome) ?? null;
    const progress = {
      sendId: send.id,
      leg,
      response,
      tokens: outcome.tokensUsed.total,
      costNano: outcome.costUsd === null ? null : Math.round(outcome.costUsd * 1e9),
      errorKind,
      atMs,
    };
    // Nobody waits for the answer any more, so the failure must be reported.
    if (errorKind !== null)
      return outcome.failure?.transient === true && !waiting.has(send.id)
        ? { ...progress, inbox: failedNote(send, causeOf(send, outcome), atMs) }
        : progress;
    if (hasNextAnswer(send, leg, response)) return { ...progress, next: workOf(send, leg + 1, atMs) };
    const inbox = inboxOf(send, response, waiting.has(send.id), atMs);
    return { ...progress, ...(inbox !== undefined && { inbox }) };
  }

  function publish(send: SendRow & SendState, leg: number, progress: SendProgress): void {
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
    if (progress.next !== undefined) return deps.wake();
    announceInbox(progress.inbox);
    waiting.end(send.id, {
      response: progress.response,
      errorKind: progress.errorKind,
      announced: progress.inbox !== undefined,
      turnsCompleted: progress.errorKind === null ? leg : leg - 1,
      tokens: send.tokens + progress.tokens,
      costNano: send.costNano === null || progress.costNano === null ? null : send.costNano + progress.costNano,
    });
  }

  function announceInbox(message: InboxMessage | undefined): void {
    if (message !== undefined) deps.inbox.announce(message);
  }

  const run: WorkHandler = async (item, signal) => {
    const { sendId, leg } = Payload.parse(item.payload);
    const send = await db.read(findSend, { id: sendId });
    // It was ended in the meantime by a kill or a deletion.
    if (send?.state !== 'open') return endedElsewhere(sendId, send);
    if (send.leg !== leg) return { state: 'aborted', errorKind: 'ended' };
    const identity = identityOf(send);
    if (identity === undefined) return fail(item, sendId, 'token_gone');
    if (send.rootRunId !== null && !deps.mayContinue(send.rootRunId)) return fail(item, sendId, 'revoked');
    const { id: workId, owner, fence } = item;
    const before = leg === 0 ? undefined : sidesOf(send, leg).there?.ref;
    const clean = before === undefined ? !send.tainted : !(await deps.isTainted([before]));
    let kept: SendProgress | undefined;
    const settle: DurableTurn['settle'] = (outcome) => {
      // A waiting caller gets the failure at once.
      const wait = waiting.has(sendId) ? undefined : deps.durable.waitFor(item, outcome);
      if (wait !== undefined) return wait;
      const errorKind = errorKindOf(outcome);
      kept = progressOf(send, leg, outcome);
      const state = errorKind === undefined ? 'done' : outcome.finishReason === 'aborted' ? 'aborted' : 'failed';
      return { state, ...(errorKind !== undefined && { errorKind }), alongside: { send: kept } };
    };
    try {
      const outcome = await deps.turns.durable(
        {
          workId,
          owner,
          fence,
          ...askedOf(send, leg, clean),
          ...(send.byAgent && { authority: send.authority }),
          target: sidesOf(send, leg).here,
          ...(send.rootRunId !== null && { rootRunId: send.rootRunId }),
          ...(send.boundsJson !== null && { toolBounds: Bounds.parse(parseJson(send.boundsJson)) }),
          kept: true,
          operation: 'interactive',
          settle,
        },
        callOf(send, identity, workId, signal),
      );
      if (outcome.settled && kept !== undefined) publish(send, leg, kept);
      return 'settled';
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const now = await db.read(findSend, { id: sendId });
      if (now?.state !== 'open') return endedElsewhere(sendId, now);
      if (signal.aborted) throw error;
      if (!waiting.has(sendId)) return { retryAfterMs: waitMs(item), errorKind: error.code };
      return fail(item, sendId, error.code);
    }
  };

  return {
    run,
    async stop(rootRunId) {
      const ids = await db.read(openSends, { rootRunId });
      for (const id of ids) {
        await db.write(failSend, { id, errorKind: 'killed', atMs: clock.now() });
        endWaitAsFailed(id, 'killed');
      }
      return ids.length;
    },
    async conversationDeleted(ref) {
      for (const id of waiting.to(ref)) {
        endWaitAsFailed(id, 'deleted');
        await db.write(failSend, { id, errorKind: 'deleted', atMs: clock.now() });
      }
    },
    async gaveUp(item, errorKind, cause) {
      const { sendId } = Payload.parse(item.payload);
      const send = await db.read(findSend, { id: sendId });
      // A waiting caller is notified directly, and the caller that deleted the conversation knows.
      const needsNoNote = waiting.has(sendId) || errorKind === 'deleted' || send?.state !== 'open';
      await fail(item, sendId, errorKind, needsNoNote ? undefined : failedNote(send, isForOwners(identityOf(send)) ? cause : errorKind, clock.now()));
    },
  };
}
