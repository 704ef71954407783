import * as z from 'zod';
import { AppError } from '../../kernel/app-error.ts';
import type { Egress, EgressHead, EgressResponse } from '../../kernel/egress.ts';
import type { Tool } from '../../runtime/tool.ts';
import { createPageReader, type ReadPage } from './page-reader.ts';

export interface WebFetchDeps {
  readonly egress: Egress;
  readonly readPage?: ReadPage;
}

const args = z.strictObject({
  url: z.string().min(1).max(4096).describe('Address of the page, http or https.'),
});

const maxBytes = 2 * 1024 * 1024;
const timeoutMs = 30_000;

/** `web_fetch`: the text of a public page as Markdown; plain text and JSON as they are. */
export function createWebFetchTool({ egress, readPage = createPageReader() }: WebFetchDeps): Tool<typeof args> {
  return {
    name: 'web_fetch',
    description: 'Gets the readable text of a public web page (HTML as Markdown, plain text and JSON as they are).',
    args,
    risk: 'outward',
    effect: 'pure',
    timeoutMs: timeoutMs + 15_000,
    async run({ url }, { signal }) {
      const response = await egress.request({
        url,
        maxBytes,
        timeoutMs,
        signal,
        headers: { accept: 'text/html, application/xhtml+xml, text/markdown, text/plain, application/json;q=0.9, text/*;q=0.8' },
        accept: refuseUnreadable,
      });
      const kind = mediaType(response);
      const text = decode(response);
      const page =
        kind.endsWith('html') || (kind === '' && /^\s*<(?:!doctype|html)/i.test(text)) ? await readPage(text, signal) : { title: '', text };
      const lines = [`URL: ${response.url}`];
      if (page.title !== '') lines.push(`Title: ${page.title.replace(/\s+/g, ' ').slice(0, 300)}`);
      if (response.truncated) lines.push(`Note: only the first ${maxBytes} bytes were read`);
      return {
        content: `${lines.join('\n')}\n\n${page.text === '' ? '(no readable text)' : page.text}`,
        outside: { source: `web page ${new URL(response.url).origin}` },
      };
    },
  };
}

/** Before the body is read: an error page is no answer, and films are no text. */
function refuseUnreadable(head: EgressHead): void {
  const { host } = new URL(head.url);
  if (head.status < 200 || head.status > 299) throw new AppError('unavailable', `${host} answered with status ${head.status}`);
  const kind = mediaType(head);
  if (kind !== '' && !/^text\/|^application\/(?:.*\+)?(?:json|xml)$|^application\/(?:x-)?(?:ndjson|yaml|javascript)$/.test(kind))
    throw new AppError('unsupported_media_type', `${host} answered with ${kind.slice(0, 100)}, which is not text`);
}

function mediaType(head: EgressHead): string {
  return (head.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** By the header, by what the page says of itself near its beginning, or as UTF-8. */
function decode(response: EgressResponse): string {
  const start = response.body.subarray(0, 1024).toString('latin1');
  const named =
    /charset\s*=\s*["']?([\w-]+)/i.exec(response.headers['content-type'] ?? '') ?? /<meta[^>]{1,200}charset\s*=\s*["']?([\w-]+)/i.exec(start);
  try {
    return new TextDecoder(named?.[1] ?? 'utf-8').decode(response.body);
  } catch {
    return response.body.toString();
  }
}
