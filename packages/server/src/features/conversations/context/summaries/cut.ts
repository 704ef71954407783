import { recentResults } from '../../../../runtime/context-window.ts';
import type { CountedRow } from '../store.ts';

/** Shares of the capacity available to history. */
export const shares = {
  /** Usage above which the cut moves. */
  full: 0.75,
  /** Messages kept verbatim when the cut moves. */
  tail: 0.4,
  /** Messages that may be kept when that avoids a stopgap. */
  longTail: 0.6,
  /** Notes on cut messages. */
  notes: 0.2,
  /** Excerpts about a question. */
  recall: 0.1,
  /** Minimum messages outside the tail worth a summary. */
  leastLeaf: 0.15,
  mostLeaf: 0.3,
} as const;

export const sumTokens = (rows: readonly CountedRow[]) => rows.reduce((sum, row) => sum + row.tokens, 0);

/**
 * Returns the first message of the newest exchanges within `share` of the capacity, at least the last exchange. Returns a
 * position after all rows when none starts in them, or when the last one alone exceeds the capacity and cannot be sent.
 */
export function tailBegin(rows: readonly CountedRow[], capacity: number, share: number): number {
  let begin: number | undefined;
  let sum = 0;
  let results = 0;
  let needed = 0;
  for (const row of rows.toReversed()) {
    sum += row.tokens;
    if (begin === undefined) {
      if (row.role === 'tool') results += 1;
      if (row.role !== 'tool' || results <= recentResults) needed += row.tokens;
      if (needed > capacity * shares.full) break;
    } else if (sum > capacity * share) break;
    if (row.role === 'user') begin = row.seq;
  }
  return begin ?? (rows.at(-1)?.seq ?? 0) + 1;
}

/** Returns the position of the cut: before a whole exchange, at the end of the summaries if that leaves at most a long tail. */
export function chooseCut(rows: readonly CountedRow[], covered: number, capacity: number): number {
  const last = tailBegin(rows, capacity, shares.tail) - 1;
  const begins = rows.filter((row) => row.role === 'user').map((row) => row.seq - 1);
  if (covered >= last) return begins.find((seq) => seq >= covered) ?? Math.max(last, begins.at(-1) ?? last);
  const behind = sumTokens(rows.filter((row) => row.seq > covered));
  return begins.includes(covered) && behind <= capacity * shares.longTail ? covered : last;
}

/** Returns the tokens covered by one leaf: a quarter of the capacity, with a minimum worth a summary and a maximum models read well. */
export function leafTokens(capacity: number): number {
  return Math.floor(Math.min(Math.max(2000, capacity / 4), capacity * shares.mostLeaf, 32_000));
}

/** Returns the maximum tokens of one summary. */
export function summaryTokens(capacity: number): number {
  return Math.floor(Math.min(1200, Math.max(160, capacity / 14)));
}
