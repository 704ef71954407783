import type { IncomingHttpHeaders } from 'node:http';

/** Properties that the conditions of a download are compared with. */
export interface Representation {
  /** Quoted; weak ones start with `W/`. */
  readonly etag: string;
  readonly modifiedMs: number;
  readonly size: number;
}

/** Both ends inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Checks the preconditions of a GET or HEAD in the order of RFC 9110 §13.2.2. */
export function checkPreconditions(headers: IncomingHttpHeaders, { etag, modifiedMs }: Representation): 'met' | 'failed' | 'not_modified' {
  const modified = Math.floor(modifiedMs / 1000) * 1000;
  const since = dateOf(headers['if-modified-since']);
  const unmodified = dateOf(headers['if-unmodified-since']);
  if (headers['if-match'] !== undefined) {
    if (!names(headers['if-match'], etag, 'strong')) return 'failed';
  } else if (unmodified !== undefined && modified > unmodified) return 'failed';
  if (headers['if-none-match'] !== undefined) return names(headers['if-none-match'], etag, 'weak') ? 'not_modified' : 'met';
  return since !== undefined && modified <= since ? 'not_modified' : 'met';
}

/**
 * Returns the part that `Range` asks for (RFC 9110 §14): undefined for the whole, also for several ranges, other units
 * and unreadable values; `unsatisfiable` when none of it exists.
 */
export function chooseRange(headers: IncomingHttpHeaders, { etag, modifiedMs, size }: Representation): ByteRange | 'unsatisfiable' | undefined {
  const asked = /^bytes=\s*(?:(\d{1,15})\s*)?-\s*(?:(\d{1,15})\s*)?$/i.exec(headers.range ?? '');
  const [first, last] = [asked?.[1] ?? '', asked?.[2] ?? ''];
  if (asked === null || (first === '' && last === '') || !sameAsBefore(headers['if-range'], etag, modifiedMs)) return undefined;
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  if (start >= size) return 'unsatisfiable';
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}

/** `If-Range`: only an exact, strong match may lead to a part (RFC 9110 §13.1.5). A date never is one: a second is too coarse. */
function sameAsBefore(condition: string | string[] | undefined, etag: string, modifiedMs: number): boolean {
  if (condition === undefined) return true;
  if (typeof condition !== 'string') return false;
  return condition.startsWith('"') ? condition === etag : dateOf(condition) === Math.floor(modifiedMs / 1000) * 1000 && !etag.startsWith('W/');
}

function names(list: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true;
  if (comparison === 'strong' && etag.startsWith('W/')) return false;
  const tags = list.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.some((tag) => (comparison === 'weak' ? opaque(tag) === opaque(etag) : tag === etag));
}

function opaque(tag: string): string {
  return tag.replace(/^W\//, '');
}

function dateOf(text: string | undefined): number | undefined {
  const ms = text === undefined || !/^[A-Z][a-z]{2}/.test(text) ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
