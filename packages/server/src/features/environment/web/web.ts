import { derived, type Live } from '../../../kernel/config/live.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Egress } from '../../../kernel/egress.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { FenceText } from '../../../runtime/fence.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { LinksConfig, WebSearchConfig } from './config.ts';
import { createFetchPage, type FetchPage } from './pages/fetch-page.ts';
import { createWebFetchTool } from './pages/fetch-tool.ts';
import { createProcessLinks } from './pages/links.ts';
import { createPageReader } from './pages/page-reader.ts';
import { createWebSearch } from './search.ts';
import { createWebSearchTool } from './search-tool.ts';

export interface WebDeps {
  readonly clock: Clock;
  readonly search: Live<WebSearchConfig>;
  readonly links: Live<LinksConfig>;
  /** Environment variables that may hold keys of search providers. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Sends requests to public addresses, and to the named `host:port` pairs wherever they are. */
  readonly egressFor: (allowHosts: readonly string[]) => Egress;
  readonly fence: FenceText;
}

export interface Web {
  /** `web_fetch` and `web_search`. */
  readonly tools: readonly Tool[];
  readonly methods: HandlersOf<'link.process'>;
  readonly fetchPage: FetchPage;
}

/** Web access: two tools, and `link.process`. */
export function createWeb({ clock, search, links, env, egressFor, fence }: WebDeps): Web {
  const fetchPage = createFetchPage(egressFor([]), createPageReader(clock));
  const processLinks = createProcessLinks({ config: links, fetchPage, fence });
  const currentSearch = derived(search, (config) => createWebSearch(config, env, egressFor));
  return {
    fetchPage,
    tools: [createWebFetchTool(fetchPage), createWebSearchTool(currentSearch)],
    methods: {
      async 'link.process'({ text, maxLinks }, { signal }) {
        const { links: read, errors, ...rest } = await processLinks(text, maxLinks, signal);
        return { ...rest, links: [...read], errors: [...errors] };
      },
    },
  };
}
