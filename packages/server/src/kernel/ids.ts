import { randomBytes, randomUUID } from 'node:crypto';

/** A random id with a readable prefix: `tn_` turns, `ar_` archives, `au_` audit rows. */
export function newId(prefix: string): string {
  return `${prefix}_${randomUUID()}`;
}

/** A W3C trace id: 32 lower-case hex digits. */
export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}
