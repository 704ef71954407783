import { hash } from 'node:crypto';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { type CallContext, type Identity, isForOwners } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { FenceLabel } from '../../../../runtime/fence.ts';
import type { DurableWork, WorkClaim, WorkHandler, WorkItem, WorkLimits, WorkOutcome } from '../../../unattended/durable/api.ts';
import type { InboxApi, InboxMessage } from '../../../unattended/inbox/api.ts';
import type { ConversationTarget, NewMessages } from '../../../conversations/sessions/api.ts';
import type { TurnFailure } from '../../../../runtime/turn-failure.ts';
import type { DurableTurn, TurnsApi } from '../../../conversations/turns/api.ts';
import type { AgentToAgentConfig } from '../config.ts';
import { failureNote, inboxText, maxAnnouncedAtOnce, writeAnnouncement } from './announcement-text.ts';
import { readOptions } from '../requests/options.ts';
import type { RunRow } from '../run/row.ts';
import type { RunEvents } from '../run/run-events.ts';
import { findClaimed, type AnnouncementClaim } from './announcement-store.ts';
import { findRun } from '../store.ts';

/** Result of `takeAnnouncement`. */
export interface RunAnnouncement {
  /** Whether the conversation exists. */
  readonly exists: boolean;
  readonly rows: readonly RunRow[];
}

/** Input of `deliverAnnouncement`, with either `inbox` or `conversation`. */
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
  readonly config: AgentToAgentConfig;
  readonly events: RunEvents;
  readonly turns: Pick<TurnsApi, 'announce'>;
  readonly durable: Pick<DurableWork, 'waitFor'>;
  readonly inbox: Pick<InboxApi, 'announce'>;
  readonly identityOf: (row: RunRow) => Identity | undefined;
  readonly fence: (text: string, label: FenceLabel) => string;
  readonly noticeMessages: () => void;
  readonly operations: {
    readonly takeAnnouncement: Operation<AnnouncementClaim, RunAnnouncement>;
    /** False when another process holds the claim. */
    readonly deliverAnnouncement: Operation<AnnouncementDelivery, boolean>;
  };
}

const AnnounceWork = z.strictObject({ runId: z.string() });
const Target = z.strictObject({ ref: z.string(), sessionKey: z.string(), agentId: z.string(), principalId: z.string() });
export const announceLimits = { concurrency: 64, maxAttempts: 5 };
/** Codes of a deleted or suspended agent; its principal is notified instead. */
const unreachable: ReadonlySet<string> = new Set(['not_found', 'denied', 'precondition_failed']);
const waitMs = ({ attempts }: WorkItem) => 5_000 * 2 ** (attempts - 1);
const claimOf = ({ id, owner, fence }: WorkItem): WorkClaim => ({ id, owner, fence });

/** Announces ended runs to their requester: by a turn in its conversation, by a note there when there is no result, or in the inbox. */
export function createAnnounce(deps: AnnounceDeps): { readonly handler: WorkHandler; readonly gaveUp: NonNullable<WorkLimits['gaveUp']> } {
  const { db, clock, events } = deps;

  const readRow = (item: WorkItem) => db.read(findRun, { id: AnnounceWork.parse(item.payload).runId });

  const handler: WorkHandler = async (item, signal) => {
    const row = await readRow(item);
    if (row === undefined || row.announced !== 'pending') return { state: 'done' };
    const identity = deps.identityOf(row);
    if (row.announceTo !== 'conversation' || row.announceTargetJson === null || identity === undefined) return announceToInbox(row, item);
    const target = Target.parse(parseJson(row.announceTargetJson));
    try {
      const call: CallContext = { identity, traceId: newTraceId(), requestId: newId('rq'), signal, transport: 'process' };
      return await announceToConversation(row, target, item, call);
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
    const outcome = await deps.turns.announce(
      turnFor(row, target, item, {
        runIds: () => found.rows.map(({ id }) => id),
        failed: (failure) => (alert = unansweredAlert(row, found.rows, target, failure)),
      }),
      async () => {
        found = await db.write(deps.operations.takeAnnouncement, { ref: target.ref, claim: claimOf(item), runId: row.id, limit: maxAnnouncedAtOnce });
        if (!found.exists || found.rows.length === 0) return undefined;
        if (found.rows.some(({ state }) => state === 'completed'))
          return writeAnnouncement(found.rows, deps.config.subagentContext.maxResultTokens, deps.fence);
        // Failures need no thought, so no model call is paid for them.
        await deliver(item, found.rows, { conversation: noteFor(target, item, found.rows) });
        hasNote = true;
        return undefined;
      },
      call,
    );
    if (outcome !== undefined) {
      if (outcome.settled && outcome.state !== 'accepted') {
        for (const announced of found.rows) events.lifecycleEnded(announced, 'turn');
        if (alert !== undefined) deps.inbox.announce(alert);
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

  /** Creates a turn without a user message, with the authority of the turn that requested the run. */
  function turnFor(
    row: RunRow,
    target: ConversationTarget,
    item: WorkItem,
    announced: { readonly runIds: () => readonly string[]; readonly failed: (failure: TurnFailure) => InboxMessage },
  ): Omit<DurableTurn, 'message' | 'fenced'> {
    const { origin, policies, agents } = readOptions(row.optionsJson).asked;
    return {
      workId: item.id,
      owner: item.owner,
      fence: item.fence,
      origin: 'background',
      authority: origin,
      target,
      rootRunId: row.rootRunId,
      toolBounds: { policies, agents },
      kept: true,
      operation: 'interactive',
      settle: (ended) => {
        const wait = deps.durable.waitFor(item, ended);
        if (wait !== undefined) return wait;
        const { failure, finishReason } = ended;
        // The announcement is in the conversation by now, even if the answer failed.
        const alongside = { announced: { runIds: announced.runIds(), as: 'turn' as const } };
        if (failure === undefined) return { state: 'done', alongside };
        // No user started this turn, so nobody would notice that the answer is missing.
        if (failure.transient) return { state: 'failed', errorKind: failure.kind, alongside: { ...alongside, inbox: [announced.failed(failure)] } };
        return { state: finishReason === 'aborted' ? 'aborted' : 'failed', errorKind: failure.kind, alongside };
      },
    };
  }

  function noteFor(target: ConversationTarget, item: WorkItem, rows: readonly RunRow[]): NewMessages {
    const atMs = clock.now();
    return {
      ref: target.ref,
      sessionKey: target.sessionKey,
      agentId: target.agentId,
      principalId: target.principalId,
      turnId: item.id,
      steps: 0,
      toolCalls: 0,
      inputTokens: 0,
      outputTokens: 0,
      costNano: 0,
      messages: [{ role: 'assistant', content: rows.map(failureNote).join('\n'), toolJson: null, attachmentsJson: null, createdAtMs: atMs }],
      atMs,
    };
  }

  async function deliver(item: WorkItem, rows: readonly RunRow[], where: Pick<AnnouncementDelivery, 'inbox' | 'conversation'>): Promise<void> {
    const delivery = { claim: claimOf(item), runIds: rows.map(({ id }) => id), ...where, atMs: clock.now() };
    const isDelivered = await db.write(deps.operations.deliverAnnouncement, delivery);
    if (!isDelivered) return;
    for (const row of rows) events.lifecycleEnded(row, where.inbox === undefined ? 'turn' : 'inbox');
    for (const message of where.inbox ?? []) deps.inbox.announce(message);
  }

  /** Announces all runs that the work has claimed; `undelivered` says why their conversation was not notified. */
  async function announceToInbox(row: RunRow, item: WorkItem, undelivered?: string): Promise<WorkOutcome> {
    const others = (await db.read(findClaimed, { workId: item.id })).filter(({ id }) => id !== row.id);
    const rows = [row, ...others];
    await deliver(item, rows, { inbox: rows.map((one) => messageOf(one, undelivered)) });
    return 'settled';
  }

  function messageOf(row: RunRow, undelivered: string | undefined): InboxMessage {
    const text = inboxText(row, { forOwner: isForOwners(deps.identityOf(row)) });
    if (undelivered === undefined || row.announceRef === null) return inboxMessage(row, row.state === 'completed' ? 'info' : 'alert', text);
    return inboxMessage(
      row,
      'alert',
      `${text}\n\nIts conversation ${row.announceRef} could not be notified: ${undelivered}. Next step: send a message there to continue.`,
    );
  }

  /** Alerts that the conversation has the announcement, but its agent did not answer. */
  function unansweredAlert(row: RunRow, rows: readonly RunRow[], { sessionKey }: ConversationTarget, { message, cause }: TurnFailure): InboxMessage {
    const why = isForOwners(deps.identityOf(row)) ? (cause ?? message) : message;
    const ids = rows.map(({ id }) => id).join(', ');
    const text = `The end of ${ids} was announced in the conversation ${sessionKey}, and its agent did not answer after waiting for its model provider: ${why}. Next step: send a message there to continue.`;
    return inboxMessage(row, 'alert', text);
  }

  function inboxMessage(row: RunRow, level: InboxMessage['level'], text: string): InboxMessage {
    const { id, agentId, conversationRef, principalId } = row;
    const about = { source: 'subagent', agentId, conversationRef, principalId } as const;
    return { id: newId('in'), opKey: `subagent:${id}`, digest: hash('sha256', id), ...about, level, text, atMs: clock.now() };
  }

  return {
    handler,
    async gaveUp(item, errorKind, cause) {
      const row = await readRow(item);
      if (row?.announced === 'pending') await announceToInbox(row, item, isForOwners(deps.identityOf(row)) ? cause : errorKind);
    },
  };
}
