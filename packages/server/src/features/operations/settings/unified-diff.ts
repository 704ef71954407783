const contextLines = 3;
/** Beyond it the changed part is shown as removed and added as a whole. */
const mostCells = 4_000_000;

interface Step {
  readonly sign: ' ' | '-' | '+';
  /** Index of the line in the text that has it; in the first one for a line that both have. */
  readonly at: number;
}

/**
 * Returns the unified diff of two texts, '' when they are equal. They are compared by `before` and `after`, and shown by the lines in
 * `shown`, of which there are as many: two secrets that differ are both shown as hidden.
 */
export function unifiedDiff(
  before: readonly string[],
  after: readonly string[],
  shown: { readonly before: readonly string[]; readonly after: readonly string[] } = { before, after },
  names: readonly [string, string] = ['before', 'after'],
): string {
  const steps = stepsBetween(before, after);
  const changes = steps.flatMap(({ sign }, index) => (sign === ' ' ? [] : [index]));
  if (changes.length === 0) return '';
  const hunks: [number, number][] = [];
  for (const index of changes) {
    const last = hunks.at(-1);
    if (last !== undefined && index - last[1] <= 2 * contextLines) last[1] = index;
    else hunks.push([index, index]);
  }
  const lines = [`--- ${names[0]}`, `+++ ${names[1]}`];
  for (const [from, to] of hunks) {
    const start = Math.max(0, from - contextLines);
    const hunk = steps.slice(start, to + contextLines + 1);
    const count = (part: readonly Step[], other: '-' | '+') => part.filter(({ sign }) => sign !== other).length;
    const range = (other: '-' | '+') => {
      const length = count(hunk, other);
      return `${count(steps.slice(0, start), other) + (length === 0 ? 0 : 1)},${length}`;
    };
    lines.push(`@@ -${range('+')} +${range('-')} @@`);
    for (const { sign, at } of hunk) lines.push(`${sign}${(sign === '+' ? shown.after[at] : shown.before[at]) ?? ''}`);
  }
  return `${lines.join('\n')}\n`;
}

function stepsBetween(before: readonly string[], after: readonly string[]): Step[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let rest = 0;
  while (rest < before.length - start && rest < after.length - start && before.at(-1 - rest) === after.at(-1 - rest)) rest++;
  const same = (from: number, to: number): Step[] => Array.from({ length: to - from }, (_, index) => ({ sign: ' ', at: from + index }));
  return [
    ...same(0, start),
    ...middle(before.slice(start, before.length - rest), after.slice(start, after.length - rest)).map(({ sign, at }) => ({ sign, at: at + start })),
    ...same(before.length - rest, before.length),
  ];
}

/** Finds the longest common lines. */
function middle(before: readonly string[], after: readonly string[]): Step[] {
  const width = after.length + 1;
  const all = (sign: '-' | '+', length: number): Step[] => Array.from({ length }, (_, at) => ({ sign, at }));
  if ((before.length + 1) * width > mostCells) return [...all('-', before.length), ...all('+', after.length)];
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      lengths[i * width + j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const steps: Step[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      steps.push({ sign: ' ', at: i });
      [i, j] = [i + 1, j + 1];
    } else if (i < before.length && (j === after.length || at(i + 1, j) >= at(i, j + 1))) steps.push({ sign: '-', at: i++ });
    else steps.push({ sign: '+', at: j++ });
  }
  return steps;
}
