import { createHash, randomUUIDv7 } from 'node:crypto';

/** Returns an id with a readable prefix (`tn_` turns, `ar_` archives, `au_` audit rows), then the time: new rows go to the end of an index. */
export function newId(prefix: string): string {
  return `${prefix}_${randomUUIDv7()}`;
}

let lastMs = 0;

/** Returns an id like `newId` that is above every earlier one of this process, also of the same millisecond. */
export function nextId(prefix: string, atMs: number): string {
  lastMs = Math.max(Math.floor(atMs), lastMs + 1);
  return `${idBefore(prefix, lastMs)}-${randomUUIDv7().slice(14)}`;
}

/** Returns a text that is below every id of `newId` from this time on, and above every earlier one. */
export function idBefore(prefix: string, atMs: number): string {
  const hex = Math.max(0, Math.floor(atMs)).toString(16).padStart(12, '0');
  return `${prefix}_${hex.slice(0, 8)}-${hex.slice(8, 12)}`;
}

/** Returns the time in an id of `newId` or `nextId`. */
export function timeOf(id: string): number {
  const at = id.indexOf('_') + 1;
  return Number.parseInt(`${id.slice(at, at + 8)}${id.slice(at + 9, at + 13)}`, 16);
}

/** Returns the id that belongs to these parts, for rows that an operation of the database adds: a second run of it must write the same. */
export function derivedId(prefix: string, ...parts: readonly string[]): string {
  const hex = createHash('sha256').update(parts.join('\n')).digest('hex');
  return `${prefix}_${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Returns a W3C trace id: 32 lower-case hex digits, of which the last 14 are random. It begins with the time, so that new rows go to the end of an index. */
export function newTraceId(): string {
  return randomUUIDv7().replaceAll('-', '');
}
