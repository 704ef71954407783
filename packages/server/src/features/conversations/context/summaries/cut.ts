import { recentResults } from '../../../../runtime/context-window.ts';
import type { CountedRow } from '../store.ts';

/** Shares of the room that history has. */
export const shares = {
  /** Above it the cut moves. */
  full: 0.75,
  /** What stays as it is when the cut moves. */
  tail: 0.4,
  /** What may stay when that spares a stopgap. */
  longTail: 0.6,
  /** Notes on what was cut. */
  notes: 0.2,
  /** What was found about a question. */
  recall: 0.1,
  /** Messages outside the tail that are worth a summary. */
  leastLeaf: 0.15,
  mostLeaf: 0.3,
} as const;

export const sumTokens = (rows: readonly CountedRow[]) => rows.reduce((sum, row) => sum + row.tokens, 0);

/**
 * First message of the newest exchanges that have at most `share` of the room together, the last exchange at the least;
 * beyond all rows when none begins in them, or when the last one fills the room by itself: as it is it could not be sent.
 */
export function tailBegin(rows: readonly CountedRow[], room: number, share: number): number {
  let begin: number | undefined;
  let sum = 0;
  let results = 0;
  let needed = 0;
  for (const row of rows.toReversed()) {
    sum += row.tokens;
    if (begin === undefined) {
      if (row.role === 'tool') results += 1;
      if (row.role !== 'tool' || results <= recentResults) needed += row.tokens;
      if (needed > room * shares.full) break;
    } else if (sum > room * share) break;
    if (row.role === 'user') begin = row.seq;
  }
  return begin ?? (rows.at(-1)?.seq ?? 0) + 1;
}

/** Where the cut goes: before a whole exchange, and where the summaries end if that leaves no more than a long tail. */
export function chooseCut(rows: readonly CountedRow[], covered: number, room: number): number {
  const last = tailBegin(rows, room, shares.tail) - 1;
  const begins = rows.filter((row) => row.role === 'user').map((row) => row.seq - 1);
  if (covered >= last) return begins.find((seq) => seq >= covered) ?? Math.max(last, begins.at(-1) ?? last);
  const behind = sumTokens(rows.filter((row) => row.seq > covered));
  return begins.includes(covered) && behind <= room * shares.longTail ? covered : last;
}

/** Tokens of the messages that one leaf covers: a quarter of the room, but not so little that a summary costs more than it spares, nor more than any model reads well. */
export function leafTokens(room: number): number {
  return Math.floor(Math.min(Math.max(2000, room / 4), room * shares.mostLeaf, 32_000));
}

/** Tokens of one summary. */
export function summaryTokens(room: number): number {
  return Math.floor(Math.min(1200, Math.max(160, room / 14)));
}
