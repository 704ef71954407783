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
import type { ContextApi, PreparedContext } from './api.ts';
import { createBackground } from './summaries/background.ts';
import { chooseCut, shares, sumTokens } from './summaries/cut.ts';
import { createLeaves } from './summaries/leaves.ts';
import { type ContextMethods, createContextMethods } from './methods.ts';
import { createCatchUp } from './summaries/catch-up.ts';
import { createCompact } from './summaries/compact.ts';
import { createPlacing } from './summaries/placing.ts';
import { see, type Seen } from './summaries/see.ts';
import { extractTerms, maxExcerpts, renderExcerpts } from './recall/recall.ts';
import { findExcerpts } from './recall/recall-store.ts';

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

const minCapacity = 256;
const longestExcerpt = 600;

/** Builds what the model sees of a conversation: everything while it fits, then notes on the older part and the newer messages verbatim. */
export function createContext(deps: ContextDeps): { readonly api: ContextApi; readonly methods: ContextMethods } & AsyncDisposable {
  const { db, log, fence } = deps;
  const leaves = createLeaves(deps);
  const placing = createPlacing(deps);
  const background = createBackground();
  const catchUp = createCatchUp({ ...deps, leaves, placing });

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

  const api: ContextApi = {
    compact: createCompact({
      ...deps,
      leaves,
      placing,
      capacityOf: (agent) => Math.max(minCapacity, deps.capacityOf(agent)),
      stopBackground: (ref) => background.stop(ref),
    }),

    async prepare({ ref, capacity: given, question }) {
      const capacity = Math.max(minCapacity, given);
      let seen = await see(db, ref, capacity);
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
