import type { Db } from '../../../../kernel/db/db.ts';
import { type CountedRow, type Head, readContext } from '../store.ts';

/** The part of a conversation that was read: messages after the cut, all of them when `whole`. */
export interface Seen extends Head {
  readonly rows: readonly CountedRow[];
  readonly whole: boolean;
}

/** Upper bound of characters per token for any text, so that reading backward fills any window. */
const charactersPerToken = 10;

/** Reads as much of a conversation as could fit; undefined when it is not stored yet. */
export async function see(db: Db, ref: string, capacity: number): Promise<Seen | undefined> {
  const seen = await db.read(readContext, { ref, bytes: capacity * charactersPerToken });
  return seen === undefined ? undefined : { ...seen, whole: (seen.rows[0]?.seq ?? seen.lastSeq + 1) === seen.cutSeq + 1 };
}
