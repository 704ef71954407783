import type { Live } from '../../../../kernel/config/live.ts';
import { AppError } from '../../../../kernel/app-error.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { LinksConfig } from '../config.ts';
import type { FetchPage } from './fetch-page.ts';

export interface ProcessedLinks {
  /** The text, followed by the text of each page, fenced. */
  readonly text: string;
  readonly links: readonly { readonly url: string; readonly title: string; readonly truncated: boolean }[];
  /** `<url>: <reason>` of each page that could not be read. */
  readonly errors: readonly string[];
}

export type ProcessLinks = (text: string, maxLinks: number | undefined, signal: AbortSignal) => Promise<ProcessedLinks>;

export interface LinksDeps {
  readonly config: Live<LinksConfig>;
  readonly fetchPage: FetchPage;
  /** Fences text that did not come from the operator. */
  readonly fence: FenceText;
}

interface ReadLink {
  readonly url: string;
  readonly title: string;
  readonly text: string;
  readonly truncated: boolean;
}

/** Markup takes several times the bytes of its text. */
const maxPageBytes = 1024 * 1024;

/** Reads the pages that a text links to and appends their text (json-rpc.md §4, link.process). */
export function createProcessLinks({ config, fetchPage, fence }: LinksDeps): ProcessLinks {
  return async (text, wanted, signal) => {
    const { maxLinks, timeoutMs, maxCharacters } = config.current;
    const urls = findLinks(text).slice(0, Math.min(wanted ?? maxLinks, maxLinks));
    const pages = await Promise.all(
      urls.map(async (url): Promise<ReadLink | { readonly url: string; readonly error: string }> => {
        try {
          const page = await fetchPage({ url, maxBytes: maxPageBytes, timeoutMs, signal });
          const shown = cutCodePoints(page.text.trim(), maxCharacters);
          return { url, title: page.title, text: shown, truncated: page.truncated || shown.length < page.text.trim().length };
        } catch (error) {
          // Only an AppError has a message meant for others.
          return { url, error: error instanceof AppError && error.code !== 'internal' ? error.message : 'The page could not be read' };
        }
      }),
    );
    if (signal.aborted) throw new AppError('cancelled', 'The links were not read to their end');
    const read = pages.filter((page) => 'text' in page);
    const blocks = read.map(({ url, title, text: body }) =>
      fence(`${title === '' ? '' : `Title: ${title}\n\n`}${body === '' ? '(no readable text)' : body}`, { source: `web page ${url}` }),
    );
    return {
      text: blocks.length === 0 ? text : `${text}\n\n---\nPages that the text above names:\n\n${blocks.join('\n\n')}`,
      links: read.map(({ url, title, truncated }) => ({ url, title, truncated })),
      errors: pages.flatMap((page) => ('error' in page ? [`${page.url}: ${page.error}`] : [])),
    };
  };
}

const maxCandidates = 50;
const maxLabel = 500;
/** Three steps, each run once per position of the text: a single pattern for all would backtrack over every division of it. */
const linkAddress = /\]\(\s{0,8}<?(https?:\/\/[^\s<>()]{1,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,2000})?)>?/gi;
const linkEnd = /[^()\n]{0,300}\)/y;
const bareLink = /https?:\/\/[^\s<>"'`\\{}|^]{1,2000}/gi;

/** Returns addresses in a text, those of Markdown links first, each once, in order; skips those on the own machine or network. */
export function findLinks(text: string): readonly string[] {
  const found = new Set<string>();
  let rest = '';
  let taken = 0;
  for (const { index, 0: whole, 1: url = '' } of text.matchAll(linkAddress)) {
    const begin = beginOfLabel(text, taken, index);
    linkEnd.lastIndex = index + whole.length;
    if (begin === undefined || !linkEnd.test(text)) continue;
    add(url);
    rest += `${text.slice(taken, begin)} `;
    taken = linkEnd.lastIndex;
  }
  rest += text.slice(taken);
  for (const [url] of rest.matchAll(bareLink)) add(url);
  return [...found];

  function add(candidate: string): void {
    if (found.size >= maxCandidates) return;
    const url = URL.parse(trimPunctuation(candidate));
    if (url === null || url.username !== '' || url.password !== '') return;
    url.hash = '';
    found.add(url.href);
  }
}

/** Finds the start of the label whose closing bracket is at `end`. */
function beginOfLabel(text: string, from: number, end: number): number | undefined {
  const before = text.slice(Math.max(from, end - maxLabel - 1), end);
  const open = before.indexOf('[', Math.max(before.lastIndexOf(']'), before.lastIndexOf('\n')) + 1);
  return open === -1 ? undefined : end - before.length + open;
}

/** Strips punctuation that ends a sentence, and a bracket that was opened before the address. */
function trimPunctuation(url: string): string {
  let end = url.length;
  for (;;) {
    const last = url[end - 1] ?? '';
    if (/[.,;:!?*_~…。，、]/.test(last)) end -= 1;
    else if ((last === ')' && !url.slice(0, end).includes('(')) || (last === ']' && !url.slice(0, end).includes('['))) end -= 1;
    else return url.slice(0, end);
  }
}

function cutCodePoints(text: string, most: number): string {
  if (text.length <= most) return text;
  const cut = text.slice(0, most);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}
