import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Egress, EgressRequest } from '../../../kernel/egress.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { SearchProvider, WebSearchConfig } from './config.ts';

export interface SearchResult {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

export interface WebSearch {
  readonly provider: SearchProvider;
  /** Fails with `unavailable` when the provider refuses or sends an invalid answer, with `timeout`, `cancelled`. */
  search(query: string, limit: number, signal: AbortSignal): Promise<readonly SearchResult[]>;
}

/** How to query one provider, and where its response has the results. */
interface Dialect {
  /** Base URL of the public service; searxng has none. */
  readonly url: string | undefined;
  readonly keyEnv: string | undefined;
  ask(base: string, query: string, limit: number, key: string): Pick<EgressRequest, 'url' | 'method' | 'headers' | 'body'>;
  readonly answer: z.ZodType<readonly SearchResult[]>;
}

const text = z.string().catch('');
const hit = <K extends string>(title: K, url: K, snippet: readonly K[]) =>
  z.record(z.string(), z.unknown()).transform((row) => ({
    title: text.parse(row[title]),
    url: text.parse(row[url]),
    snippet: snippet.map((name) => text.parse(row[name])).find((each) => each !== '') ?? '',
  }));
const json = { 'content-type': 'application/json', accept: 'application/json' };

const dialects: Readonly<Record<SearchProvider, Dialect>> = {
  brave: {
    url: 'https://api.search.brave.com/res/v1/web/search',
    keyEnv: 'BRAVE_API_KEY',
    ask: (base, query, limit, key) => ({
      url: withQuery(base, { q: query, count: String(limit) }),
      headers: { accept: 'application/json', 'x-subscription-token': key },
    }),
    // The field is missing when there are no results.
    answer: z
      .object({ web: z.object({ results: z.array(hit('title', 'url', ['description'])) }).optional() })
      .transform(({ web }) => web?.results ?? []),
  },
  tavily: {
    url: 'https://api.tavily.com/search',
    keyEnv: 'TAVILY_API_KEY',
    ask: (base, query, limit, key) => ({
      url: base,
      method: 'POST',
      headers: { ...json, authorization: `Bearer ${key}` },
      body: JSON.stringify({ query, max_results: limit }),
    }),
    answer: z.object({ results: z.array(hit('title', 'url', ['content'])) }).transform(({ results }) => results),
  },
  serper: {
    url: 'https://google.serper.dev/search',
    keyEnv: 'SERPER_API_KEY',
    ask: (base, query, limit, key) => ({
      url: base,
      method: 'POST',
      headers: { ...json, 'x-api-key': key },
      body: JSON.stringify({ q: query, num: limit }),
    }),
    answer: z.object({ organic: z.array(hit('title', 'link', ['snippet'])).default([]) }).transform(({ organic }) => organic),
  },
  exa: {
    url: 'https://api.exa.ai/search',
    keyEnv: 'EXA_API_KEY',
    ask: (base, query, limit, key) => ({
      url: base,
      method: 'POST',
      headers: { ...json, 'x-api-key': key },
      body: JSON.stringify({ query, numResults: limit, contents: { text: { maxCharacters: maxSnippet } } }),
    }),
    answer: z.object({ results: z.array(hit('title', 'url', ['text', 'summary'])) }).transform(({ results }) => results),
  },
  searxng: {
    url: undefined,
    keyEnv: undefined,
    ask: (base, query) => ({
      url: withQuery(`${base.replace(/\/+$/, '')}/search`, { q: query, format: 'json' }),
      headers: { accept: 'application/json' },
    }),
    answer: z.object({ results: z.array(hit('title', 'url', ['content'])) }).transform(({ results }) => results),
  },
};

const maxBytes = 1024 * 1024;
const maxSnippet = 1000;

/** Returns the provider that the configuration or a key in the environment selects; undefined when there is none. */
export function createWebSearch(
  config: WebSearchConfig,
  env: Readonly<Record<string, string | undefined>>,
  egressFor: (allowHosts: readonly string[]) => Egress,
): WebSearch | undefined {
  const chosen = chooseProvider(config, env);
  if (chosen === undefined) return undefined;
  const { provider, key, base } = chosen;
  const dialect = dialects[provider];
  const { hostname, port, protocol } = new URL(base);
  // Only an address that the operator configured may be private.
  const egress = egressFor(config.baseUrl === undefined ? [] : [`${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`]);
  return {
    provider,
    async search(query, limit, signal) {
      const response = await egress.request({
        ...dialect.ask(base, query, limit, key),
        maxBytes,
        timeoutMs: config.timeoutMs,
        signal,
        accept({ status }) {
          if (status === 401 || status === 403) throw new AppError('unavailable', `The search provider ${provider} refused the key of this server`);
          if (status === 429) throw new AppError('unavailable', `The search provider ${provider} takes no more requests for now`);
          if (status < 200 || status > 299) throw new AppError('unavailable', `The search provider ${provider} answered with status ${status}`);
        },
      });
      const answer = dialect.answer.safeParse(parseAnswer(response.body.toString()));
      if (!answer.success) throw new AppError('unavailable', `The search provider ${provider} sent an answer that could not be understood`);
      return answer.data.filter(({ url }) => /^https?:\/\//.test(url)).slice(0, limit);
    },
  };
}

function chooseProvider(config: WebSearchConfig, env: Readonly<Record<string, string | undefined>>) {
  const ids = config.provider === undefined ? (Object.keys(dialects) as SearchProvider[]) : [config.provider];
  for (const provider of ids) {
    const { keyEnv, url } = dialects[provider];
    const base = config.baseUrl ?? url;
    const key = config.apiKey ?? (keyEnv === undefined ? '' : env[keyEnv]?.trim());
    // A provider found in the environment needs its key; a configured one may be a proxy that needs none.
    if (base !== undefined && key !== undefined && (key !== '' || config.provider !== undefined)) return { provider, base, key };
  }
  return undefined;
}

function parseAnswer(body: string): unknown {
  try {
    return parseJson(body);
  } catch {
    return undefined;
  }
}

function withQuery(base: string, values: Readonly<Record<string, string>>): string {
  const url = new URL(base);
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
  return url.href;
}

/** One result, for a model. */
export function printResult({ title, url, snippet }: SearchResult, index: number): string {
  const plain = (words: string, most: number) => words.replace(/\s+/g, ' ').trim().slice(0, most);
  return [
    `${index + 1}. ${plain(title, 300) || '(no title)'}`,
    `   ${url.slice(0, 2048)}`,
    ...(snippet === '' ? [] : [`   ${plain(snippet, maxSnippet)}`]),
  ].join('\n');
}
