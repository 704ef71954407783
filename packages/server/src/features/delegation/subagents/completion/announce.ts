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
import { failureNote, inboxText, newsAtOnce, writeNews } from './announcement-text.ts';
import { readOptions } from '../requests/options.ts';
import type { RunRow } from '../run/row.ts';
import type { RunEvents } from '../run/run-events.ts';
import { findClaimed, type NewsClaim } from './announcement-store.ts';
import { findRun } from '../store.ts';

/** What `takeNews` gives. */
export interface News {
  /** Whether the conversation is there. */
  readonly exists: boolean;
  readonly rows: readonly RunRow[];
}

/** What `tellNews` takes, with one of the two. */
export interface Telling {
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
  readonly turns: Pick<TurnsApi, 'tell'>;
  readonly durable: Pick<DurableWork, 'waitFor'>;
  readonly inbox: Pick<InboxApi, 'announce'>;
  readonly identityOf: (row: RunRow) => Identity | undefined;
  readonly fence: (text: string, label: FenceLabel) => string;
  readonly noticeMessages: () => void;
  readonly operations: {
    readonly take: Operation<NewsClaim, News>;
    /** False when the claim is another's. */
    readonly tell: Operation<Telling, boolean>;
  };
}

const AnnounceWork = z.strictObject({ runId: z.string() });
const Target = z.strictObject({ ref: z.string(), sessionKey: z.string(), agentId: z.string(), principalId: z.string() });
export const announceLimits = { concurrency: 64, maxAttempts: 5 };
/** An agent that is gone or suspended is told nothing; whoever it works for is. */
const unreachable: ReadonlySet<string> = new Set(['not_found', 'denied', 'precondition_failed']);
const waitMs = ({ attempts }: WorkItem) => 5_000 * 2 ** (attempts - 1);
const claimOf = ({ id, owner, fence }: WorkItem): WorkClaim => ({ id, owner, fence });

/** Tells whoever asked of runs that ended: by a turn in its conversation, by a note there when there is no result, or in the inbox. */
export function createAnnounce(deps: AnnounceDeps): { readonly handler: WorkHandler; readonly gaveUp: NonNullable<WorkLimits['gaveUp']> } {
  const { db, clock, events } = deps;

  const readRow = (item: WorkItem) => db.read(findRun, { id: AnnounceWork.parse(item.payload).runId });

  const handler: WorkHandler = async (item, signal) => {
    const row = await readRow(item);
    if (row === undefined || row.announced !== 'pending') return { state: 'done' };
    const identity = deps.identityOf(row);
    if (row.announceTo !== 'conversation' || row.announceTargetJson === null || identity === undefined) return tellInbox(row, item);
    const target = Target.parse(parseJson(row.announceTargetJson));
    try {
      return await tellConversation(row, target, item, { identity, traceId: newTraceId(), requestId: newId('rq'), signal, transport: 'process' });
    } catch (error) {
      if (!(error instanceof AppError) || signal.aborted) throw error;
      if (unreachable.has(error.code)) return tellInbox(row, item);
      return { retryAfterMs: waitMs(item), errorKind: error.code };
    }
  };

  async function tellConversation(row: RunRow, target: ConversationTarget, item: WorkItem, call: CallContext): Promise<WorkOutcome> {
    let news: News = { exists: true, rows: [] };
    let hasNote = false;
    let alert: InboxMessage | undefined;
    const outcome = await deps.turns.tell(
      turnFor(row, target, item, {
        runIds: () => news.rows.map(({ id }) => id),
        failed: (failure) => (alert = unansweredAlert(row, news.rows, target, failure)),
      }),
      async () => {
        news = await db.write(deps.operations.take, { ref: target.ref, claim: claimOf(item), runId: row.id, limit: newsAtOnce });
        if (!news.exists || news.rows.length === 0) return undefined;
        if (news.rows.some(({ state }) => state === 'completed'))
          return writeNews(news.rows, deps.config.subagentContext.maxResultTokens, deps.fence);
        // Of failures there is nothing to think about: nobody pays a model for them.
        await tell(item, news.rows, { conversation: noteFor(target, item, news.rows) });
        hasNote = true;
        return undefined;
      },
      call,
    );
    if (outcome !== undefined) {
      if (outcome.settled && outcome.state !== 'accepted') {
        for (const told of news.rows) events.lifecycleEnded(told, 'turn');
        if (alert !== undefined) deps.inbox.announce(alert);
      }
      return 'settled';
    }
    if (hasNote) {
      deps.noticeMessages();
      return 'settled';
    }
    if (!news.exists) return tellInbox(row, item);
    // Another piece of work told it, or a turn that waited for it saw it.
    const now = await readRow(item);
    if (now?.announced === 'seen') events.lifecycleEnded(now, 'seen');
    return { state: 'done' };
  }

  /** A turn that nobody wrote to, with the rights of the turn that asked for the run. */
  function turnFor(
    row: RunRow,
    target: ConversationTarget,
    item: WorkItem,
    news: { readonly runIds: () => readonly string[]; readonly failed: (failure: TurnFailure) => InboxMessage },
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
        // The news is in the conversation by now, whatever became of the answer.
        const alongside = { news: { runIds: news.runIds(), as: 'turn' as const } };
        if (failure === undefined) return { state: 'done', alongside };
        // Nobody asked for this turn, so that nobody sees that it gave no answer.
        if (failure.transient) return { state: 'failed', errorKind: failure.kind, alongside: { ...alongside, inbox: [news.failed(failure)] } };
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

  async function tell(item: WorkItem, rows: readonly RunRow[], where: Pick<Telling, 'inbox' | 'conversation'>): Promise<void> {
    const isTold = await db.write(deps.operations.tell, { claim: claimOf(item), runIds: rows.map(({ id }) => id), ...where, atMs: clock.now() });
    if (!isTold) return;
    for (const row of rows) events.lifecycleEnded(row, where.inbox === undefined ? 'turn' : 'inbox');
    for (const message of where.inbox ?? []) deps.inbox.announce(message);
  }

  /** With all that the work has taken to tell; `undelivered` says why its conversation was not told. */
  async function tellInbox(row: RunRow, item: WorkItem, undelivered?: string): Promise<WorkOutcome> {
    const others = (await db.read(findClaimed, { workId: item.id })).filter(({ id }) => id !== row.id);
    const rows = [row, ...others];
    await tell(item, rows, { inbox: rows.map((one) => messageOf(one, undelivered)) });
    return 'settled';
  }

  function messageOf(row: RunRow, undelivered: string | undefined): InboxMessage {
    const text = inboxText(row, { forOwner: isForOwners(deps.identityOf(row)) });
    if (undelivered === undefined || row.announceRef === null) return inboxMessage(row, row.state === 'completed' ? 'info' : 'alert', text);
    return inboxMessage(
      row,
      'alert',
      `${text}\n\nIts conversation ${row.announceRef} could not be told: ${undelivered}. Next step: write there to go on with it.`,
    );
  }

  /** The conversation has the news, and its agent did not answer. */
  function unansweredAlert(row: RunRow, rows: readonly RunRow[], { sessionKey }: ConversationTarget, { message, cause }: TurnFailure): InboxMessage {
    const why = isForOwners(deps.identityOf(row)) ? (cause ?? message) : message;
    const ids = rows.map(({ id }) => id).join(', ');
    const text = `The end of ${ids} was announced in the conversation ${sessionKey}, and its agent did not answer after waiting for its model provider: ${why}. Next step: write there to go on with it.`;
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
      if (row?.announced === 'pending') await tellInbox(row, item, isForOwners(deps.identityOf(row)) ? cause : errorKind);
    },
  };
}
