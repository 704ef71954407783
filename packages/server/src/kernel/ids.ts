import { randomBytes, randomUUIDv7 } from 'node:crypto';

/** Returns an id with a readable prefix (`tn_` turns, `ar_` archives, `au_` audit rows), then the time: new rows go to the end of an index. */
export function newId(prefix: string): string {
  return `${prefix}_${randomUUIDv7()}`;
}

/** Returns a W3C trace id: 32 lower-case hex digits. */
export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}
