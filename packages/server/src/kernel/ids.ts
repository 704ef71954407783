import { randomBytes, randomUUIDv7 } from 'node:crypto';

/** An id with a readable prefix: `tn_` turns, `ar_` archives, `au_` audit rows. Time comes first in it, so new rows go to the end of an index. */
export function newId(prefix: string): string {
  return `${prefix}_${randomUUIDv7()}`;
}

/** A W3C trace id: 32 lower-case hex digits. */
export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}
