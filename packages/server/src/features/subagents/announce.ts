import { hash } from 'node:crypto';
import * as z from 'zod';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext, Identity } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Db } from '../../kernel/db/db.ts';
import type { Operation } from '../../kernel/db/operation.ts';
import { newId, newTraceId } from '../../kernel/ids.ts';
import { parseJson } from '../../kernel/json.ts';
import type { FenceLabel } from '../../runtime/fence.ts';
import type { DurableWork, WorkClaim, WorkHandler, WorkItem, WorkOutcome } from '../durable/api.ts';
import type { InboxApi, InboxMessage } from '../inbox/api.ts';
import type { ConversationTarget, NewMessages } from '../sessions/api.ts';
import type { DurableTurn, TurnsApi } from '../turns/api.ts';
import type { AgentToAgentConfig } from './config.ts';
import { failureNote, inboxText, newsAtOnce, writeNews } from './news.ts';
import { readOptions } from './options.ts';
import type { RunRow } from './row.ts';
import type { RunEvents } from './run-events.ts';
import { findClaimed, type NewsClaim } from './news-store.ts';
import { findRun } from './store.ts';

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
export function createAnnounce(deps: AnnounceDeps): { readonly handler: WorkHandler; readonly gaveUp: (item: WorkItem) => Promise<void> } {
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
    const outcome = await deps.turns.tell(
      turnFor(row, target, item, () => news.rows.map(({ id }) => id)),
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
      if (outcome.settled && outcome.state !== 'accepted') for (const told of news.rows) events.lifecycleEnded(told, 'turn');
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
    runIds: () => readonly string[],
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
        const alongside = { news: { runIds: runIds(), as: 'turn' as const } };
        if (failure === undefined) return { state: 'done', alongside };
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

  /** With all that the work has taken to tell. */
  async function tellInbox(row: RunRow, item: WorkItem): Promise<WorkOutcome> {
    const others = (await db.read(findClaimed, { workId: item.id })).filter(({ id }) => id !== row.id);
    const rows = [row, ...others];
    await tell(item, rows, { inbox: rows.map(messageOf) });
    return 'settled';
  }

  function messageOf(row: RunRow): InboxMessage {
    const text = inboxText(row);
    return {
      id: newId('in'),
      opKey: `subagent:${row.id}`,
      digest: hash('sha256', row.id),
      source: 'subagent',
      agentId: row.agentId,
      conversationRef: row.conversationRef,
      principalId: row.principalId,
      level: row.state === 'completed' ? 'info' : 'alert',
      text,
      atMs: clock.now(),
    };
  }

  return {
    handler,
    async gaveUp(item) {
      const row = await readRow(item);
      if (row?.announced === 'pending') await tellInbox(row, item);
    },
  };
}
