import { AppError } from '../../../kernel/app-error.ts';

export interface CrawledPage {
  readonly url: string;
  /** Markdown. */
  readonly text: string;
}

export type FetchPage = (request: {
  readonly url: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}) => Promise<{ readonly url: string; readonly title: string; readonly text: string }>;

const maxPageBytes = 2 * 1024 * 1024;
const pageMs = 30_000;
const maxPages = 500;
const link = /\]\(<?(https?:\/\/[^\s<>()]{1,2000})/g;

/**
 * Reads the pages of a site one after the other: the first one, and those that it leads to at the same origin and below the same
 * folder. Fails when the first page cannot be read; the others that exist and could not be read are returned in `unread`.
 */
export async function crawlSite(
  site: string,
  limits: { readonly fetchPage: FetchPage; readonly maxPages: number; readonly signal: AbortSignal },
  onPage: (page: CrawledPage) => Promise<void>,
): Promise<{ readonly more: boolean; readonly unread: readonly string[] }> {
  const first = canonical(site);
  const within = new URL('.', first);
  const most = Math.min(limits.maxPages, maxPages);
  const seen = new Set([first]);
  const unread: string[] = [];
  let more = false;
  for (const url of seen) {
    limits.signal.throwIfAborted();
    try {
      const page = await limits.fetchPage({ url, maxBytes: maxPageBytes, timeoutMs: pageMs, signal: limits.signal });
      // A redirect must not lead out of the site either.
      if (!isWithin(canonical(page.url), within)) {
        // A page for signing in, or of maintenance: it says nothing about the site.
        if (url === first) throw new AppError('unavailable', `The site leads to ${page.url}, which is not below ${within.href}`);
        continue;
      }
      await onPage({ url, text: page.title === '' ? page.text : `# ${page.title}\n\n${page.text}` });
      for (const [, target = ''] of page.text.matchAll(link)) {
        const next = URL.canParse(target) ? canonical(target) : undefined;
        if (next === undefined || seen.has(next) || !isWithin(next, within)) continue;
        if (seen.size >= most) more = true;
        else seen.add(next);
      }
    } catch (error) {
      limits.signal.throwIfAborted();
      if (url === first || !(error instanceof AppError) || error.code === 'internal') throw error;
      if (error.code !== 'not_found') unread.push(url);
    }
  }
  return { more, unread };
}

function canonical(text: string): string {
  const url = new URL(text);
  url.hash = '';
  return url.href;
}

function isWithin(url: string, within: URL): boolean {
  const { origin, pathname, username } = new URL(url);
  return origin === within.origin && username === '' && pathname.startsWith(within.pathname);
}
