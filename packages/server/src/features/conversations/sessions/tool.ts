import { ConversationRef, once } from '@gatehouse/contract';
import * as z from 'zod';
import type { Tool } from '../../../runtime/tool.ts';
import type { Sessions } from './sessions.ts';
import { dollars } from './reading/view.ts';

const Status = once(() => z.strictObject({}));
const List = once(() =>
  z.strictObject({
    limit: z.int().min(1).max(100).default(20),
    sinceMinutes: z.int().min(1).max(5_256_000).optional().describe('Only conversations with a message in the last minutes.'),
  }),
);
const History = once(() =>
  z.strictObject({
    conversationRef: ConversationRef.optional().describe('Reference from sessions_list; the current conversation when absent.'),
    offset: z.int().min(0).default(0).describe('Messages to skip, from the oldest.'),
    limit: z.int().min(1).max(100).default(30),
  }),
);
const Search = once(() =>
  z.strictObject({
    query: z.string().min(1).max(500).describe('Search terms.'),
    limit: z.int().min(1).max(50).default(10),
  }),
);

type Methods = Pick<Sessions['methods'], 'session.status' | 'session.list' | 'session.history' | 'session.search'>;

const common = { risk: 'read', effect: 'pure', timeoutMs: 10_000 } as const;
const messageCharacters = 2000;
const minuteOf = (ms: number) => new Date(ms).toISOString().slice(0, 16);

/** `session_status`, `sessions_list`, `sessions_history` and `session_search`: an agent's own conversations with its user. */
export function createSessionTools(methods: Methods, isTainted: (refs: readonly string[]) => Promise<boolean>): readonly Tool[] {
  const outsideOf = async (shown: readonly { readonly conversationRef: string }[]) => ({
    source: 'conversations',
    clean: !(await isTainted([...new Set(shown.map(({ conversationRef: ref }) => ref))])),
  });

  const status: Tool<ReturnType<typeof Status>> = {
    ...common,
    name: 'session_status',
    description: 'Shows the current conversation: model, tokens, cost, steps.',
    get args() {
      return Status();
    },
    async run(_args, { call, conversationRef, sessionKey, used }) {
      const { model, agentName, maxSteps, ...before } = await methods['session.status']({}, call);
      // The calling turn is stored only when it ends.
      const { steps, tokens, costNano } = used?.() ?? { steps: 0, tokens: 0, costNano: 0 };
      const stepsExecuted = before.stepsExecuted + steps;
      const tokensUsed = {
        totalTokens: before.tokensUsed.totalTokens + tokens,
        totalCost: before.tokensUsed.totalCost + dollars(costNano),
      };
      return { content: JSON.stringify({ conversationRef, sessionKey, agentName, model, tokensUsed, stepsExecuted, maxSteps }) };
    },
  };

  const list: Tool<ReturnType<typeof List>> = {
    ...common,
    name: 'sessions_list',
    description: 'Lists your conversations with your user, newest first.',
    get args() {
      return List();
    },
    async run({ limit, sinceMinutes }, { call }) {
      const params = { kind: 'all' as const, allAgents: false, offset: 0, limit, ...(sinceMinutes !== undefined && { sinceMinutes }) };
      const { sessions, total } = await methods['session.list'](params, call);
      const lines = sessions.map((one) => `${one.conversationRef} ${minuteOf(one.updatedAt)} ${one.sessionKey}: ${one.title ?? ''}`);
      return { content: `${total} conversations\n${lines.join('\n')}`, outside: await outsideOf(sessions) };
    },
  };

  const history: Tool<ReturnType<typeof History>> = {
    ...common,
    name: 'sessions_history',
    description: 'Shows messages of one of your conversations, oldest first.',
    get args() {
      return History();
    },
    describe: ({ conversationRef }) => `read conversation ${conversationRef ?? '(this one)'}`,
    async run({ conversationRef, offset, limit }, { call }) {
      const { session, messages, total } = await methods['session.history'](
        { offset, limit, ...(conversationRef !== undefined && { conversationRef }) },
        call,
      );
      const lines = messages.map(({ seq, role, content }) => `${seq} ${role}: ${cut(content)}`);
      return {
        content: `Messages ${offset + 1} to ${offset + messages.length} of ${total}\n${lines.join('\n')}`,
        outside: await outsideOf([session]),
      };
    },
  };

  const search: Tool<ReturnType<typeof Search>> = {
    ...common,
    name: 'session_search',
    description: 'Searches the messages of your conversations with your user.',
    get args() {
      return Search();
    },
    describe: ({ query }) => `search conversations: ${query}`,
    async run({ query, limit }, { call, agentId }) {
      const found = await methods['session.search']({ query, scope: 'all', kind: 'all', limit, agentId }, call);
      if (found.mode !== 'search' || found.results.length === 0) return { content: 'No matches.' };
      const lines = found.results.map((hit) => `${hit.conversationRef} ${hit.seq} ${hit.role}: ${cut(hit.snippet)}`);
      return { content: lines.join('\n'), outside: await outsideOf(found.results) };
    },
  };

  return [status, list, history, search];
}

function cut(text: string): string {
  return text.length <= messageCharacters ? text : `${text.slice(0, messageCharacters - 1).toWellFormed()}…`;
}
