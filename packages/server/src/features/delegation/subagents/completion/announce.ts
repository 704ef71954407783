import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { type CallContext, type Identity, isForOwners } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { DurableWork, WorkClaim, WorkHandler, WorkItem, WorkLimits, WorkOutcome } from '../../../unattended/durable/api.ts';
import type { DeliveryApi, EndpointsApi } from '../../../channels/delivery/api.ts';
import type { InboxApi, InboxMessage } from '../../../unattended/inbox/api.ts';
import type { ConversationTarget, NewMessages } from '../../../conversations/sessions/api.ts';
import type { TurnFailure } from '../../../../runtime/turn-failure.ts';
import type { TurnsApi } from '../../../conversations/turns/api.ts';
import type { AgentToAgentConfig } from '../config.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import { endMessage, failureNotes, unansweredAlert } from './announcement-message.ts';
import { maxAnnouncedAtOnce, writeAnnouncement } from './announcement-text.ts';
import { readTarget } from './announce-target.ts';
import { announcementTurn, answerTo, settlementOf } from './announcement-turn.ts';
import { callOf } from '../run/turn.ts';
import type { RunRow } from '../run/row.ts';
import type { RunEvents } from '../run/run-events.ts';
import { type AnnouncementClaim, findClaimed } from './announcement-store.ts';
import { findRun } from '../store.ts';

/** Result of `takeAnnouncement`. */
export interface RunAnnouncement {
  /** Whether the conversation exists. */
  readonly exists: boolean;
  readonly rows: readonly RunRow[];
}

/** Input of `deliverAnnouncement`, with `inbox` or `conversation`; with both for a conversation that a chat belongs to. */
export interface AnnouncementDelivery {
  readonly claim: WorkClaim;
  readonly runIds: readonly string[];
  readonly inbox?: readonly InboxMessage[];
  readonly conversation?: NewMessages;
  readonly atMs: number;
}

export interface AnnounceDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: Live<AgentToAgentConfig>;
  readonly events: RunEvents;
  readonly turns: Pick<TurnsApi, 'announce'>;
  readonly durable: Pick<DurableWork, 'waitFor'>;
  readonly inbox: InboxApi;
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  readonly delivery: Pick<DeliveryApi, 'sendCall' | 'wake'>;
  readonly identityOf: (row: RunRow) => Identity | undefined;
  readonly fence: FenceText;
  readonly noticeMessages: () => void;
  readonly operations: {
    readonly takeAnnouncement: Operation<AnnouncementClaim, RunAnnouncement>;
    /** False when another process holds the claim. */
    readonly deliverAnnouncement: Operation<AnnouncementDelivery, boolean>;
  };
}

const AnnounceWork = z.strictObject({ runId: z.string() });
export const announceLimits = { concurrency: 64, maxAttempts: 5 };
/** Codes of a deleted or suspended agent; its principal is notified instead. */
const unreachable: ReadonlySet<string> = new Set(['not_found', 'denied', 'precondition_failed']);
const waitMs = ({ attempts }: WorkItem) => 5_000 * 2 ** (attempts - 1);
const claimOf = ({ id, owner, fence }: WorkItem): WorkClaim => ({ id, owner, fence });

/** Announces ended runs to their requester: by a turn in its conversation, by a note there when there is no result, or in the inbox. */
export function createAnnounce(deps: AnnounceDeps): { readonly handler: WorkHandler; readonly gaveUp: NonNullable<WorkLimits['gaveUp']> } {
  const { db, clock, events } = deps;

  const isForOwner = (row: RunRow) => isForOwners(deps.identityOf(row));
  const readRow = (item: WorkItem) => db.read(findRun, { id: AnnounceWork.parse(item.payload).runId });

  const handler: WorkHandler = async (item, signal) => {
    const row = await readRow(item);
    if (row === undefined || row.announced !== 'pending') return { state: 'done' };
    const identity = deps.identityOf(row);
    const { conversation: target } = readTarget(row);
    if (row.announceTo !== 'conversation' || target === undefined || identity === undefined) return announceToInbox(row, item);
    try {
      return await announceToConversation(row, target, item, callOf(identity, signal));
    } catch (error) {
      if (!(error instanceof AppError) || signal.aborted) throw error;
      if (unreachable.has(error.code)) return announceToInbox(row, item);
      return { retryAfterMs: waitMs(item), errorKind: error.code };
    }
  };

  async function announceToConversation(row: RunRow, target: ConversationTarget, item: WorkItem, call: CallContext): Promise<WorkOutcome> {
    let found: RunAnnouncement = { exists: true, rows: [] };
    let hasNote = false;
    let alert: InboxMessage | undefined;
    const { endpoint } = readTarget(row);
    const outcome = await deps.turns.announce(
      announcementTurn(row, target, item, (ended) => {
        const wait = deps.durable.waitFor(item, ended);
        if (wait !== undefined) return wait;
        const settlement = settlementOf(ended, found.rows, (failure) =>
          deps.inbox.deliverCall((alert = unanswered(row, found.rows, target, failure))),
        );
        const answer = endpoint === undefined ? undefined : answerTo(endpoint, { item, target }, ended);
        return answer === undefined ? settlement : { ...settlement, alongside: [...(settlement.alongside ?? []), deps.delivery.sendCall(answer)] };
      }),
      async () => {
        found = await db.write(deps.operations.takeAnnouncement, { ref: target.ref, claim: claimOf(item), runId: row.id, limit: maxAnnouncedAtOnce });
        if (!found.exists || found.rows.length === 0) return undefined;
        if (found.rows.some(({ state }) => state === 'completed'))
          return writeAnnouncement(found.rows, deps.config.current.subagentContext.maxResultTokens, deps.fence);
        // Failures need no thought, so no model call is paid for them.
        const notes = failureNotes(target, item.id, found.rows, clock.now());
        const inbox = endpoint === undefined ? undefined : found.rows.map((one) => endMessageOf(one));
        await deliver(item, found.rows, { conversation: notes, ...(inbox !== undefined && { inbox }) });
        hasNote = true;
        return undefined;
      },
      call,
    );
    if (outcome !== undefined) {
      if (outcome.settled && outcome.state !== 'accepted') {
        for (const announced of found.rows) events.lifecycleEnded(announced, 'turn');
        if (alert !== undefined) deps.inbox.announce(alert);
        if (endpoint !== undefined) deps.delivery.wake(endpoint.instance);
      }
      return 'settled';
    }
    if (hasNote) {
      deps.noticeMessages();
      return 'settled';
    }
    if (!found.exists) return announceToInbox(row, item);
    // Another work item announced it, or a waiting turn saw it.
    const now = await readRow(item);
    if (now?.announced === 'seen') events.lifecycleEnded(now, 'seen');
    return { state: 'done' };
  }

  function unanswered(row: RunRow, rows: readonly RunRow[], target: ConversationTarget, { message, cause }: TurnFailure): InboxMessage {
    const why = isForOwner(row) ? (cause ?? message) : message;
    return unansweredAlert(row, { runIds: rows.map(({ id }) => id), sessionKey: target.sessionKey, why, atMs: clock.now() });
  }

  async function deliver(item: WorkItem, rows: readonly RunRow[], where: Pick<AnnouncementDelivery, 'inbox' | 'conversation'>): Promise<void> {
    const delivery = { claim: claimOf(item), runIds: rows.map(({ id }) => id), ...where, atMs: clock.now() };
    const isDelivered = await db.write(deps.operations.deliverAnnouncement, delivery);
    if (!isDelivered) return;
    for (const row of rows) events.lifecycleEnded(row, where.conversation === undefined ? 'inbox' : 'turn');
    for (const message of where.inbox ?? []) deps.inbox.announce(message);
  }

  /** Announces all runs that the work has claimed; `undelivered` says why their conversation was not notified. */
  async function announceToInbox(row: RunRow, item: WorkItem, undelivered?: string): Promise<WorkOutcome> {
    const others = (await db.read(findClaimed, { workId: item.id })).filter(({ id }) => id !== row.id);
    const rows = [row, ...others];
    await deliver(item, rows, { inbox: rows.map((one) => endMessageOf(one, undelivered)) });
    return 'settled';
  }

  /** Returns the message about the end of a run, addressed to its chat when it has one. */
  function endMessageOf(row: RunRow, undelivered?: string): InboxMessage {
    const { endpoint } = readTarget(row);
    // Everybody in the chat reads it.
    const forOwner = endpoint === undefined && isForOwner(row);
    const message = endMessage(row, { forOwner, undelivered, atMs: clock.now() });
    return endpoint === undefined ? message : deps.endpoints.address(message, endpoint);
  }

  return {
    handler,
    async gaveUp(item, errorKind, cause) {
      const row = await readRow(item);
      if (row?.announced === 'pending') await announceToInbox(row, item, isForOwner(row) ? cause : errorKind);
    },
  };
}
