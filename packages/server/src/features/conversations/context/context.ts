import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { Log } from '../../../kernel/log.ts';
import { type Fence, holdsTaint } from '../../../runtime/fence.ts';
import { toModelMessage, decodeAttachments } from '../../../runtime/stored-message.ts';
import { rememberTokens } from '../../../runtime/message-tokens.ts';
import type { ModelMessage } from '../../../llm/model.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { PastAttachments } from '../sessions/api.ts';
import type { Compaction, ContextApi, PreparedContext } from './api.ts';
import { createBackground } from './summaries/background.ts';
import { chooseCut, shares, sumTokens, tailBegin } from './summaries/cut.ts';
import { createLeaves } from './summaries/leaves.ts';
import { type ContextMethods, createContextMethods } from './methods.ts';
import { createPlacing, type Seen } from './summaries/placing.ts';
import { extractTerms, maxExcerpts, renderExcerpts } from './recall/recall.ts';
import { findExcerpts } from './recall/recall-store.ts';
import { coveredBy, readContext, readRoots } from './store.ts';
import type { SummaryOrder } from './summaries/summarise.ts';

export interface ContextDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly fence: Fence;
  readonly agents: AgentsApi;
  readonly work: Pick<ModelWork, 'generate'>;
  /** Counts a compaction of a conversation. */
  readonly countCompaction: Operation<{ readonly ref: string }, void>;
  /** Returns the tokens available to history in a call of an agent. */
  readonly capacityOf: (agent: Agent) => number;
}

/** Upper bound of characters per token for any text, so that reading backward fills any window. */
const charactersPerToken = 10;
const minCapacity = 256;
/** Maximum model calls after one turn, and for one `session.compact`. */
const callsPerTurn = 8;
const callsPerCompaction = 64;
/** Minimum tokens worth compacting. */
const minCompacted = 200;
/** Newest exchanges kept by a compaction on demand, within this share of the capacity. */
const sparedExchanges = 2;
const sparedShare = 0.25;
const longestExcerpt = 600;

/** Builds what the model sees of a conversation: everything while it fits, then notes on the older part and the newer messages verbatim. */
export function createContext(deps: ContextDeps): { readonly api: ContextApi; readonly methods: ContextMethods } & AsyncDisposable {
  const { db, log, fence } = deps;
  const leaves = createLeaves(deps);
  const placing = createPlacing(deps);
  const background = createBackground();

  async function see(ref: string, capacity: number): Promise<Seen | undefined> {
    const seen = await db.read(readContext, { ref, bytes: capacity * charactersPerToken });
    return seen === undefined ? undefined : { ...seen, whole: (seen.rows[0]?.seq ?? seen.lastSeq + 1) === seen.cutSeq + 1 };
  }

  async function recall(seen: Seen, question: string, capacity: number): Promise<string | undefined> {
    if (seen.cutSeq <= seen.floor) return undefined;
    const terms = extractTerms(question);
    if (terms.length === 0) return undefined;
    const tokens = Math.floor(capacity * shares.recall);
    const length = Math.min(longestExcerpt, Math.floor((tokens * 3) / 2));
    const about = { conversationId: seen.conversationId, from: seen.floor + 1, to: seen.cutSeq };
    return renderExcerpts(
      await db.read(findExcerpts, { ...about, terms, limit: maxExcerpts, length }),
      tokens,
      fence,
      !seen.tainted && !holdsTaint(seen.prefix),
    );
  }

  /** Summarises in the background. Counts as one compaction whatever it adds, even when it is interrupted. */
  async function catchUp(order: SummaryOrder): Promise<void> {
    const allowance = { calls: callsPerTurn, made: 0 };
    try {
      await summariseBehind(order, allowance);
    } finally {
      if (allowance.made > 0) await db.write(deps.countCompaction, { ref: order.ref });
    }
  }

  /** Summarises messages before the cut, then those that will be next. */
  async function summariseBehind(order: SummaryOrder, allowance: { calls: number; made: number }): Promise<void> {
    const { ref, capacity } = order;
    const seen = await see(ref, capacity);
    if (seen === undefined) return;
    // Condense first, so that notes stay few while a long history is being caught up.
    await leaves.condense(seen, seen.cutSeq, order, allowance);
    if (!(await leaves.extend(seen, seen.cutSeq, order, allowance))) return;
    await leaves.condense(seen, seen.cutSeq, order, allowance);
    if (seen.behind) await placing.move(seen, () => seen.cutSeq, { ref, capacity, renew: true });
    const to = tailBegin(seen.rows, capacity, shares.tail) - 1;
    const covered = coveredBy(await db.read(readRoots, seen), seen.floor);
    const outside = sumTokens(seen.rows.filter((row) => row.seq > covered && row.seq <= to));
    if (outside >= capacity * shares.leastLeaf) await leaves.extend(seen, to, order, allowance);
  }

  const api: ContextApi = {
    async prepare({ ref, capacity: given, question }) {
      const capacity = Math.max(minCapacity, given);
      let seen = await see(ref, capacity);
      if (seen === undefined) return { messages: [], attached: [], hasNotes: false, tokens: 0, behind: false, tainted: false };
      if (!seen.whole || seen.prefixTokens + sumTokens(seen.rows) > capacity * shares.full) {
        const { rows } = seen;
        const renew = seen.prefixTokens > capacity * shares.tail;
        seen = await placing.move(seen, (covered) => chooseCut(rows, covered, capacity), { ref, capacity, renew });
      }
      const recalled = await recall(seen, question, capacity);
      return { ...toPrepared(seen), ...(recalled !== undefined && { recalled }) };
    },

    afterTurn({ ref, agent, principalId, capacity: given, tokens, behind }) {
      const capacity = Math.max(minCapacity, given);
      if (!behind && tokens < capacity * (shares.tail + shares.leastLeaf)) return;
      background.start(ref, (signal) =>
        catchUp({ ref, agentId: agent.id, principalId, capacity, asked: false, signal }).catch((error: unknown) => {
          if (!signal.aborted) log.debug({ conversationRef: ref, error }, 'Background summary failed; retrying after a later turn');
        }),
      );
    },

    async compact({ ref, agent, principalId, instructions, signal }): Promise<Compaction> {
      await background.stop(ref);
      const capacity = Math.max(minCapacity, deps.capacityOf(agent));
      const seen = await see(ref, capacity);
      if (seen === undefined) return { messageCount: 0, tokensBefore: 0, tokensAfter: 0, summaries: 0, method: 'none' };
      const tokensBefore = seen.prefixTokens + sumTokens(seen.rows);
      const begins = seen.rows.filter((row) => row.role === 'user').map((row) => row.seq);
      const cutSeq = Math.max(tailBegin(seen.rows, capacity, sparedShare), begins.at(-sparedExchanges) ?? begins[0] ?? 0) - 1;
      const outside = sumTokens(seen.rows.filter((row) => row.seq <= cutSeq));
      if (outside < minCompacted && !seen.behind)
        return { messageCount: seen.lastSeq, tokensBefore, tokensAfter: tokensBefore, summaries: 0, method: 'none' };
      const order = { ref, agentId: agent.id, principalId, capacity, asked: true, instructions, signal };
      const allowance = { calls: callsPerCompaction, made: 0 };
      const whole = await leaves
        .extend(seen, cutSeq, order, allowance)
        .then(async (done) => {
          await leaves.condense(seen, cutSeq, order, allowance);
          return done;
        })
        .catch((error: unknown) => {
          signal.throwIfAborted();
          log.warn({ conversationRef: ref, error }, 'Compacting without a summary');
          return false;
        });
      const placed = await placing.move(seen, () => cutSeq, { ref, capacity, renew: true });
      await db.write(deps.countCompaction, { ref });
      return {
        messageCount: seen.lastSeq,
        tokensBefore,
        tokensAfter: placed.prefixTokens + sumTokens(placed.rows),
        summaries: allowance.made,
        method: whole && !placed.behind ? 'summary' : 'truncated',
      };
    },
  };

  return { api, methods: createContextMethods(deps), [Symbol.asyncDispose]: () => background[Symbol.asyncDispose]() };
}

function toPrepared(seen: Seen): PreparedContext {
  const messages: ModelMessage[] = [];
  const attached: PastAttachments[] = [];
  if (seen.prefix !== '') {
    const notes: ModelMessage = { role: 'user', content: seen.prefix };
    rememberTokens(notes, seen.prefixTokens);
    messages.push(notes);
  }
  for (const row of seen.rows) {
    const message = toModelMessage(row);
    rememberTokens(message, row.tokens);
    if (row.attachmentsJson !== null) attached.push({ index: messages.length, attachments: decodeAttachments(row.attachmentsJson) });
    messages.push(message);
  }
  return {
    messages,
    attached,
    hasNotes: seen.prefix !== '',
    tokens: seen.prefixTokens + sumTokens(seen.rows),
    behind: seen.behind,
    tainted: seen.tainted,
  };
}
