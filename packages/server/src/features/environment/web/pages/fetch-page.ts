import { AppError } from '../../../../kernel/app-error.ts';
import type { Egress, EgressHead, EgressResponse } from '../../../../kernel/egress.ts';
import type { ReadPage } from './page-reader.ts';

export interface Page {
  /** Final address after redirects. */
  readonly url: string;
  /** Empty when the page has none; without line breaks, at most 300 characters. */
  readonly title: string;
  /** Markdown for HTML; plain text and JSON as they are. */
  readonly text: string;
  /** Only the first `maxBytes` were read. */
  readonly truncated: boolean;
}

export type FetchPage = (request: {
  readonly url: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}) => Promise<Page>;

/**
 * Fetches the text of public pages: `Egress` decides what may be reached, a separate thread parses it. Fails with `not_found`
 * for a page that is not there (status 404 or 410), and with `unavailable` for any other error of its server.
 */
export function createFetchPage(egress: Egress, readPage: ReadPage): FetchPage {
  return async ({ url, maxBytes, timeoutMs, signal }) => {
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
    const isHtml = kind.endsWith('html') || (kind === '' && /^\s*<(?:!doctype|html)/i.test(text));
    const page = isHtml ? await readPage({ html: text, url: response.url }, signal) : { title: '', text };
    return { url: response.url, title: page.title.replace(/\s+/g, ' ').trim().slice(0, 300), text: page.text, truncated: response.truncated };
  };
}

/** Rejects error pages and binary types before the body is read. */
function refuseUnreadable(head: EgressHead): void {
  const { host } = new URL(head.url);
  if (head.status < 200 || head.status > 299) {
    const isGone = head.status === 404 || head.status === 410;
    throw new AppError(isGone ? 'not_found' : 'unavailable', `${host} answered with status ${head.status}`);
  }
  const kind = mediaType(head);
  if (kind !== '' && !/^text\/|^application\/(?:.*\+)?(?:json|xml)$|^application\/(?:x-)?(?:ndjson|yaml|javascript)$/.test(kind))
    throw new AppError('unsupported_media_type', `${host} answered with ${kind.slice(0, 100)}, which is not text`);
}

function mediaType(head: EgressHead): string {
  return (head.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Chooses the charset by the header, by a declaration near the start of the page, or UTF-8. */
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
