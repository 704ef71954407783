import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Tool } from '../../../runtime/tool.ts';
import { isUntrustedOrigin } from '../../../runtime/tool-policy.ts';
import type { MemoryApi } from './api.ts';
import { isClean } from './entries/memory-entry.ts';
import type { MemoryMethods } from './methods.ts';

const Search = once(() =>
  z.strictObject({
    query: z.string().min(1).max(2000).describe('What to look for.'),
    limit: z.int().min(1).max(50).default(10),
  }),
);
const Get = once(() => z.strictObject({ id: z.string().min(1).max(64).describe('Id of a memory, as returned by memory_search.') }));
const Store = once(() =>
  z.strictObject({
    content: z.string().min(1).max(4000).describe('One self-contained fact that is worth knowing in later conversations. Never a secret.'),
    tags: z.array(z.string().min(1).max(64)).max(8).default([]),
  }),
);

interface MemoryToolDeps {
  readonly methods: Pick<MemoryMethods, 'memory.inspect'>;
  readonly api: Pick<MemoryApi, 'store' | 'search'>;
}

const timeoutMs = 10_000;
const outsideOf = (shown: readonly Parameters<typeof isClean>[0][]) => ({ source: 'memory', clean: shown.every(isClean) });
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** `memory_search`, `memory_get` and `memory_store`: an agent reads and adds its own memories and those of its principal. */
export function createMemoryTools({ methods, api }: MemoryToolDeps): readonly Tool[] {
  const search: Tool<ReturnType<typeof Search>> = {
    name: 'memory_search',
    description: 'Searches what you remember from earlier conversations, by terms and by meaning.',
    get args() {
      return Search();
    },
    risk: 'read',
    effect: 'pure',
    timeoutMs,
    describe: ({ query }) => `search memories: ${query}`,
    async run({ query, limit }, { agentId, principalId, conversationRef, call, signal }) {
      const booked = { bookedOn: principalId, bookedConversation: conversationRef, part: call.agentCaller?.turn };
      const found = await api.search({ text: query, agentId, principalId, limit, ...booked, signal });
      if (found.length === 0) return { content: 'Nothing is remembered about this.' };
      const entries = found.map(({ entry }) => entry);
      const lines = entries.map((entry) => `${entry.id} (${entry.trustLevel}, ${dayOf(entry.createdAtMs)}) ${entry.content}`);
      return { content: lines.join('\n'), outside: outsideOf(entries) };
    },
  };

  const get: Tool<ReturnType<typeof Get>> = {
    name: 'memory_get',
    description: 'Shows one memory and its source.',
    get args() {
      return Get();
    },
    risk: 'read',
    effect: 'pure',
    timeoutMs,
    describe: ({ id }) => `show memory ${id}`,
    async run({ id }, { call }) {
      const { entry } = await methods['memory.inspect']({ id }, call);
      if (entry === undefined) throw new AppError('not_found', 'Memory not found', { param: 'id' });
      const { content, memoryType, trustLevel, tags, createdAt, source } = entry;
      return { content: JSON.stringify({ id, content, memoryType, trustLevel, tags, day: dayOf(createdAt), source }), outside: outsideOf([entry]) };
    },
  };

  const add: Tool<ReturnType<typeof Store>> = {
    name: 'memory_store',
    description: 'Remembers a fact for later conversations with the same person.',
    get args() {
      return Store();
    },
    risk: 'write',
    readsPrivate: false,
    effect: 'once',
    timeoutMs,
    describe: ({ content }) => `remember: ${content}`,
    async run({ content, tags }, { agentId, principalId, origin, sessionKey, conversationRef, call, tainted }) {
      const { id } = await api.store(
        {
          agentId,
          principalId,
          content,
          // What a caller other than the operator makes an agent remember is trusted no more than text of an outsider.
          trustLevel: isUntrustedOrigin(origin) ? 'external' : 'learned',
          taintLevel: tainted() || isUntrustedOrigin(origin) ? 'wrapped' : 'clean',
          source: { who: agentId, channel: origin, sessionKey, conversationRef },
          tags: [...tags, 'agent-stored'],
        },
        call,
      );
      return { content: `Remembered as ${id}.` };
    },
  };

  return [search, get, add];
}
