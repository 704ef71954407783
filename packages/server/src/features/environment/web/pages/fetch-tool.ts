import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { FetchPage } from './fetch-page.ts';

const args = once(() =>
  z.strictObject({
    url: z.string().min(1).max(4096).describe('Address of the page, http or https.'),
  }),
);

const maxBytes = 2 * 1024 * 1024;
const timeoutMs = 30_000;

/** `web_fetch`: the text of a public page as Markdown; plain text and JSON as they are. */
export function createWebFetchTool(fetchPage: FetchPage): Tool<ReturnType<typeof args>> {
  return {
    name: 'web_fetch',
    description: 'Gets the readable text of a public web page (HTML as Markdown, plain text and JSON as they are).',
    args: args(),
    risk: 'outward',
    effect: 'pure',
    timeoutMs: timeoutMs + 15_000,
    destination: ({ url }) => ({ kind: 'address', url }),
    describe: ({ url }) => `Get ${url}`,
    async run({ url }, { signal }) {
      const page = await fetchPage({ url, maxBytes, timeoutMs, signal }).catch(notRead);
      // Redirects and headers can contain text from the remote server, so errors are text from outside too.
      if (typeof page === 'string') return { content: page, isError: true, outside: { source: 'web page' } };
      const lines = [`URL: ${page.url}`];
      if (page.title !== '') lines.push(`Title: ${page.title}`);
      if (page.truncated) lines.push(`Note: only the first ${maxBytes} bytes were read`);
      return {
        content: `${lines.join('\n')}\n\n${page.text === '' ? '(no readable text)' : page.text}`,
        outside: { source: `web page ${new URL(page.url).origin}` },
      };
    },
  };
}

/** Returns why the page could not be read; rethrows any other error. */
function notRead(error: unknown): string {
  if (error instanceof AppError && error.code !== 'internal' && error.code !== 'cancelled') return error.message;
  throw error;
}
