import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Tool } from '../../../runtime/tool.ts';
import { printResult, type WebSearch } from './search.ts';

const args = once(() =>
  z.strictObject({
    query: z.string().min(1).max(400).describe('What to look for, as you would type it into a search engine.'),
    limit: z.int().min(1).max(20).default(8).describe('Number of results.'),
  }),
);

/** `web_search`: title, address and snippet of each result. Without a provider each call is refused with what to configure. */
export function createWebSearchTool(currentSearch: () => WebSearch | undefined): Tool<ReturnType<typeof args>> {
  return {
    name: 'web_search',
    description: 'Searches the web; returns titles, addresses and snippets. Read a page with web_fetch.',
    args: args(),
    risk: 'outward',
    effect: 'pure',
    timeoutMs: 75_000,
    destination: () => ({ kind: 'configured' }),
    describe: ({ query }) => `Search the web for ${JSON.stringify(query)}`,
    async run({ query, limit }, { signal }) {
      const search = currentSearch();
      if (search === undefined)
        throw new AppError(
          'precondition_failed',
          'No search provider is configured: the operator sets webSearch.provider and webSearch.apiKey in config.yaml (brave, tavily, serper, exa or searxng)',
        );
      const results = await search.search(query, limit, signal);
      if (results.length === 0) return { content: 'Nothing was found.' };
      return { content: results.map(printResult).join('\n\n'), outside: { source: 'web search' } };
    },
  };
}
