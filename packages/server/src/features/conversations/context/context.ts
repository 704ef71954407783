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
import { mostExcerpts, renderExcerpts, wordsOf } from './recall/recall.ts';
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
  /** Books that older messages of a conversation were replaced by summaries. */
  readonly countCompaction: Operation<{ readonly ref: string }, void>;
  /** Tokens that history may have in a call of this agent. */
  readonly roomOf: (agent: Agent) => number;
}

/** More characters than that make no token, whatever the text: what is read backward fills any window. */
const charactersPerToken = 10;
const leastRoom = 256;
/** Model calls after one turn, and those of one `session.compact`. */
const callsPerTurn = 8;
const callsPerCompaction = 64;
/** Less is not worth the notes that would stand for it. */
const leastCompacted = 200;
/** Exchanges that a compaction on demand leaves as they are, within this share of the room. */
const sparedExchanges = 2;
const sparedShare = 0.25;
const longestExcerpt = 600;

/** What the model sees of a conversation: everything while it fits, then notes on the older part and the newer part as it was said. */
export function createContext(deps: ContextDeps): { readonly api: ContextApi; readonly methods: ContextMethods } & AsyncDisposable {
  const { db, log, fence } = deps;
  const leaves = createLeaves(deps);
  const placing = createPlacing(deps);
  const background = createBackground();

  async function see(ref: string, room: number): Promise<Seen | undefined> {
    const seen = await db.read(readContext, { ref, bytes: room * charactersPerToken });
    return seen === undefined ? undefined : { ...seen, whole: (seen.rows[0]?.seq ?? seen.lastSeq + 1) === seen.cutSeq + 1 };
  }

  async function recall(seen: Seen, question: string, room: number): Promise<string | undefined> {
    if (seen.cutSeq <= seen.floor) return undefined;
    const words = wordsOf(question);
    if (words.length === 0) return undefined;
    const tokens = Math.floor(room * shares.recall);
    const length = Math.min(longestExcerpt, Math.floor((tokens * 3) / 2));
    const about = { conversationId: seen.conversationId, from: seen.floor + 1, to: seen.cutSeq };
    return renderExcerpts(
      await db.read(findExcerpts, { ...about, words, limit: mostExcerpts, length }),
      tokens,
      fence,
      !seen.tainted && !holdsTaint(seen.prefix),
    );
  }

  /** Counts as one compaction whatever it adds, also when it does not come to its end. */
  async function catchUp(order: SummaryOrder): Promise<void> {
    const allowance = { calls: callsPerTurn, made: 0 };
    try {
      await summariseBehind(order, allowance);
    } finally {
      if (allowance.made > 0) await db.write(deps.countCompaction, { ref: order.ref });
    }
  }

  /** Summaries of what the cut has left behind, then of what it will leave behind next. */
  async function summariseBehind(order: SummaryOrder, allowance: { calls: number; made: number }): Promise<void> {
    const { ref, room } = order;
    const seen = await see(ref, room);
    if (seen === undefined) return;
    // First, so that the notes of a long history that is caught up with stay few from turn to turn.
    await leaves.condense(seen, seen.cutSeq, order, allowance);
    if (!(await leaves.extend(seen, seen.cutSeq, order, allowance))) return;
    await leaves.condense(seen, seen.cutSeq, order, allowance);
    if (seen.behind) await placing.move(seen, () => seen.cutSeq, { ref, room, renew: true });
    const to = tailBegin(seen.rows, room, shares.tail) - 1;
    const covered = coveredBy(await db.read(readRoots, seen), seen.floor);
    const outside = sumTokens(seen.rows.filter((row) => row.seq > covered && row.seq <= to));
    if (outside >= room * shares.leastLeaf) await leaves.extend(seen, to, order, allowance);
  }

  const api: ContextApi = {
    async prepare({ ref, room: given, question }) {
      const room = Math.max(leastRoom, given);
      let seen = await see(ref, room);
      if (seen === undefined) return { messages: [], attached: [], hasNotes: false, tokens: 0, behind: false, tainted: false };
      if (!seen.whole || seen.prefixTokens + sumTokens(seen.rows) > room * shares.full) {
        const { rows } = seen;
        seen = await placing.move(seen, (covered) => chooseCut(rows, covered, room), { ref, room, renew: seen.prefixTokens > room * shares.tail });
      }
      const recalled = await recall(seen, question, room);
      return { ...toPrepared(seen), ...(recalled !== undefined && { recalled }) };
    },

    afterTurn({ ref, agent, principalId, room: given, tokens, behind }) {
      const room = Math.max(leastRoom, given);
      if (!behind && tokens < room * (shares.tail + shares.leastLeaf)) return;
      background.start(ref, (signal) =>
        catchUp({ ref, agentId: agent.id, principalId, room, asked: false, signal }).catch((error: unknown) => {
          if (!signal.aborted) log.debug({ conversationRef: ref, error }, 'summarising goes on after a later turn');
        }),
      );
    },

    async compact({ ref, agent, principalId, instructions, signal }): Promise<Compaction> {
      await background.stop(ref);
      const room = Math.max(leastRoom, deps.roomOf(agent));
      const seen = await see(ref, room);
      if (seen === undefined) return { messageCount: 0, tokensBefore: 0, tokensAfter: 0, summaries: 0, method: 'none' };
      const tokensBefore = seen.prefixTokens + sumTokens(seen.rows);
      const begins = seen.rows.filter((row) => row.role === 'user').map((row) => row.seq);
      const cutSeq = Math.max(tailBegin(seen.rows, room, sparedShare), begins.at(-sparedExchanges) ?? begins[0] ?? 0) - 1;
      const outside = sumTokens(seen.rows.filter((row) => row.seq <= cutSeq));
      if (outside < leastCompacted && !seen.behind)
        return { messageCount: seen.lastSeq, tokensBefore, tokensAfter: tokensBefore, summaries: 0, method: 'none' };
      const order = { ref, agentId: agent.id, principalId, room, asked: true, instructions, signal };
      const allowance = { calls: callsPerCompaction, made: 0 };
      const whole = await leaves
        .extend(seen, cutSeq, order, allowance)
        .then(async (done) => {
          await leaves.condense(seen, cutSeq, order, allowance);
          return done;
        })
        .catch((error: unknown) => {
          signal.throwIfAborted();
          log.warn({ conversationRef: ref, error }, 'a compaction goes without a summary');
          return false;
        });
      const placed = await placing.move(seen, () => cutSeq, { ref, room, renew: true });
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
