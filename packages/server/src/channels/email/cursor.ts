import { hash } from 'node:crypto';
import * as z from 'zod';
import { parseJson } from '../../kernel/json.ts';

/** Message-IDs that a cursor remembers. */
const maxIds = 64;

const Cursor = z.strictObject({
  /** UIDVALIDITY of the mailbox. */
  validity: z.string().regex(/^\d{1,20}$/),
  /** Last UID that was taken or passed over. */
  uid: z.int().min(0),
  /** Arrival of the newest mail that was taken or passed over. */
  atMs: z.int(),
  /** Digests of the Message-IDs of the last mails. */
  ids: z.array(z.string().max(16)).max(maxIds),
  /** UIDs up to `uid` are from before the mailbox was made again: of these only mails from after `atMs` are new. */
  before: z.strictObject({ uid: z.int().min(0), atMs: z.int() }).optional(),
});

/** Position in a mailbox: the mails up to it are stored. */
export type Cursor = z.output<typeof Cursor>;

interface Box {
  readonly uidValidity: bigint;
  readonly uidNext: number;
}

/** Returns the position that was stored; undefined when there is none that can be read. */
export function parseCursor(text: string | undefined): Cursor | undefined {
  if (text === undefined) return undefined;
  try {
    return Cursor.parse(parseJson(text, { maxDepth: 4 }));
  } catch {
    return undefined;
  }
}

/** Returns the position before which nothing is received: that of the first connect ever. */
export const firstCursor = ({ uidValidity, uidNext }: Box, nowMs: number): Cursor => ({
  validity: String(uidValidity),
  uid: uidNext - 1,
  // Dates of arrival have seconds.
  atMs: Math.floor(nowMs / 1_000) * 1_000,
  ids: [],
});

/** Returns the same position in the mailbox as it is now: when it was made again, its UIDs mean something else. */
export function cursorIn(cursor: Cursor, { uidValidity, uidNext }: Box): Cursor {
  if (cursor.validity === String(uidValidity)) return cursor;
  return {
    ...cursor,
    validity: String(uidValidity),
    uid: 0,
    before: { uid: uidNext - 1, atMs: Math.min(cursor.atMs, cursor.before?.atMs ?? cursor.atMs) },
  };
}

export interface Passed {
  readonly uid: number;
  readonly arrivedAtMs: number;
  readonly messageId: string | undefined;
}

/** Returns the position behind a mail. */
export function advance(cursor: Cursor, { uid, arrivedAtMs, messageId }: Passed): Cursor {
  const ids = messageId === undefined ? cursor.ids : [...cursor.ids, digestOf(messageId)].slice(-maxIds);
  const { before, ...rest } = cursor;
  return {
    ...rest,
    uid,
    ids,
    atMs: Math.max(cursor.atMs, arrivedAtMs),
    ...(before !== undefined && uid < before.uid && { before }),
  };
}

/** Time for which mails may be on their way. */
const onTheWayMs = 60 * 60_000;

/** Whether a mail was there before the mailbox was made again: by its date, and by its Message-ID. */
export function wasThere(cursor: Cursor, { uid, arrivedAtMs, messageId, sentAtMs }: Passed & { readonly sentAtMs: number }): boolean {
  const { before, ids } = cursor;
  if (before === undefined || uid > before.uid) return false;
  if (messageId === undefined) return arrivedAtMs <= before.atMs || sentAtMs <= before.atMs;
  // Who copies a mailbox may set the dates of arrival: then only the dates in the mails say how old they are.
  return arrivedAtMs < before.atMs || sentAtMs < before.atMs - onTheWayMs || ids.includes(digestOf(messageId));
}

const digestOf = (messageId: string): string => hash('sha256', messageId, 'base64url').slice(0, 16);
