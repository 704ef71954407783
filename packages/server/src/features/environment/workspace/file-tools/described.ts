import * as z from 'zod';

export const filePath = z.string().min(1).max(4096).describe('Path of the file, relative to the workspace folder, e.g. "notes/today.md".');
export const fileTimeoutMs = 10_000;

/** Returns the line that describes a call to people. */
export function describe(what: string, about: string, more = ''): string {
  const line = `${what} ${about.replaceAll(/[\s\p{C}]+/gu, ' ')}`;
  return `${line.length > 150 ? `${line.slice(0, 150).toWellFormed()}…` : line}${more === '' ? '' : ` ${more.slice(0, 45).toWellFormed()}`}`;
}
