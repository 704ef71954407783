import { once } from '@gatehouse/contract';
import * as z from 'zod';

export const searchProviders = ['brave', 'tavily', 'serper', 'exa', 'searxng'] as const;
export type SearchProvider = (typeof searchProviders)[number];

/** Section `webSearch`: the provider behind `web_search`. */
export const WebSearchConfig = once(() =>
  z
    .strictObject({
      provider: z
        .enum(searchProviders)
        .optional()
        .describe('Without it the first one whose key is found in the environment: BRAVE_API_KEY, TAVILY_API_KEY, SERPER_API_KEY, EXA_API_KEY.'),
      apiKey: z.string().min(1).optional().meta({ secret: true }).describe('"${NAME}" takes it from the environment; searxng needs none.'),
      baseUrl: z
        .url({ protocol: /^https?$/ })
        .optional()
        .describe('Another address of the provider; searxng needs it. Its host is reached even when it is not public.'),
      timeoutMs: z.int().min(1000).max(60_000).default(15_000),
    })
    .refine((config) => config.provider !== 'searxng' || config.baseUrl !== undefined, { path: ['baseUrl'], message: 'searxng needs its address' })
    .refine((config) => config.provider !== undefined || (config.apiKey === undefined && config.baseUrl === undefined), {
      path: ['provider'],
      message: 'expected the provider that apiKey and baseUrl belong to',
    }),
);
export type WebSearchConfig = z.output<ReturnType<typeof WebSearchConfig>>;

/** Section `links`: what `link.process` does with the addresses in a text. */
export const LinksConfig = once(() =>
  z.strictObject({
    maxLinks: z.int().min(1).max(10).default(3).describe('Addresses of one text that are followed; the first ones.'),
    timeoutMs: z.int().min(1000).max(60_000).default(10_000).describe('Deadline of one page.'),
    maxCharacters: z.int().min(500).max(50_000).default(5000).describe('Characters of one page.'),
  }),
);
export type LinksConfig = z.output<ReturnType<typeof LinksConfig>>;
