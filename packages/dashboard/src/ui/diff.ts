/** One line of a diff; line numbers start at 1 and are absent where the text has no such line. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** A group of changed lines with the context lines around it. */
export type Hunk = readonly DiffLine[];

const contextLines = 3;
/** Maximum number of changes for which the shortest edit script is computed: its cost grows quadratically. */
const maxEdits = 600;

/** Returns the line diff of two texts as hunks with three context lines; empty when the texts are equal. */
export function diffTexts(before: string, after: string): readonly Hunk[] {
  return toHunks(diffLines(splitLines(before), splitLines(after)));
}

/** Splits a text into lines; an empty last line doesn't count. */
function splitLines(text: string): readonly string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  else lines[lines.length - 1] += '\u2404';
  return lines;
}

function diffLines(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const lines: DiffLine[] = [];
  const same = (b: number, a: number) => lines.push({ kind: 'same', text: before[b] ?? '', before: b + 1, after: a + 1 });
  const removed = (b: number) => lines.push({ kind: 'removed', text: before[b] ?? '', before: b + 1, after: undefined });
  const added = (a: number) => lines.push({ kind: 'added', text: after[a] ?? '', before: undefined, after: a + 1 });
  for (let at = 0; at < start; at++) same(at, at);
  let b = start;
  let a = start;
  for (const [keepB, keepA] of [
    ...keptPairs(before, after, start, before.length - end, after.length - end),
    [before.length - end, after.length - end] as const,
  ]) {
    while (b < keepB) removed(b++);
    while (a < keepA) added(a++);
    if (b < before.length - end && a < after.length - end) same(b++, a++);
  }
  for (let at = end; at > 0; at--) same(before.length - at, after.length - at);
  return lines;
}

/**
 * Returns the common lines by Myers' greedy algorithm; none when there are more than `maxEdits` changes, and then the
 * whole range counts as replaced.
 */
function keptPairs(before: readonly string[], after: readonly string[], from: number, toB: number, toA: number): (readonly [number, number])[] {
  const n = toB - from;
  const m = toA - from;
  const limit = Math.min(maxEdits, n + m);
  const furthest = new Int32Array(2 * limit + 3);
  const rounds: Int32Array[] = [];
  for (let edits = 0; edits <= limit; edits++) {
    rounds.push(furthest.slice());
    for (let k = -edits; k <= edits; k += 2) {
      let x = isDown(furthest, k, edits, limit) ? at(furthest, k + 1, limit) : at(furthest, k - 1, limit) + 1;
      let y = x - k;
      while (x < n && y < m && before[from + x] === after[from + y]) {
        x++;
        y++;
      }
      furthest[k + limit + 1] = x;
      if (x >= n && y >= m) return walkBack(rounds, edits, n, m, limit).map(([keptX, keptY]) => [keptX + from, keptY + from] as const);
    }
  }
  return [];
}

const at = (row: Int32Array, k: number, limit: number): number => row[k + limit + 1] ?? 0;
const isDown = (row: Int32Array, k: number, edits: number, limit: number): boolean =>
  k === -edits || (k !== edits && at(row, k - 1, limit) < at(row, k + 1, limit));

function walkBack(rounds: readonly Int32Array[], lastEdits: number, n: number, m: number, limit: number): (readonly [number, number])[] {
  const pairs: (readonly [number, number])[] = [];
  let x = n;
  let y = m;
  for (let edits = lastEdits; edits >= 0; edits--) {
    const row = rounds[edits] ?? new Int32Array();
    const k = x - y;
    const fromK = isDown(row, k, edits, limit) ? k + 1 : k - 1;
    const fromX = edits === 0 ? 0 : at(row, fromK, limit);
    const fromY = edits === 0 ? 0 : fromX - fromK;
    // The edit of this round, then the common lines.
    const midX = edits === 0 || fromK === k + 1 ? fromX : fromX + 1;
    while (x > midX) {
      x--;
      y--;
      pairs.push([x, y]);
    }
    x = fromX;
    y = fromY;
  }
  return pairs.reverse();
}

function toHunks(lines: readonly DiffLine[]): readonly Hunk[] {
  const hunks: Hunk[] = [];
  let start = -1;
  let end = -1;
  for (const [index, { kind }] of lines.entries()) {
    if (kind === 'same') continue;
    if (start >= 0 && index - contextLines > end) {
      hunks.push(lines.slice(start, end));
      start = -1;
    }
    if (start < 0) start = Math.max(0, index - contextLines);
    end = Math.min(lines.length, index + 1 + contextLines);
  }
  if (start >= 0) hunks.push(lines.slice(start, end));
  return hunks;
}
