import { expect, test } from 'vitest';
import { createBlockParser } from './blocks.ts';
import { nextEnd, sliceLength } from './slices.ts';

const section = (at: number) =>
  `## Part ${at}\n\nA paragraph with **weight**, about ${'tides '.repeat(20)}\n\n- one\n- two\n\n\`\`\`ts\nconst a = ${at};\n\`\`\`\n\n`;
const long = Array.from({ length: 470 }, (_, at) => section(at)).join('');

/** Returns the ends of all slices of a text that is there at once. */
function endsOf(text: string): number[] {
  const ends: number[] = [];
  for (let drawn = 0; drawn < text.length; drawn = ends.at(-1) ?? 0) ends.push(nextEnd(text, drawn));
  return ends;
}

test('an answer of 100 KB is drawn in slices of few new blocks, and the last one has all of it', () => {
  expect(long.length).toBeGreaterThan(90_000);
  const parse = createBlockParser();
  let known: ReadonlySet<unknown> = new Set();
  const fresh = endsOf(long).map((end) => {
    const blocks = parse(long.slice(0, end));
    const count = blocks.filter((block) => !known.has(block) && block.type !== 'space').length;
    known = new Set(blocks);
    return count;
  });
  expect(fresh.length).toBeGreaterThan(12);
  // 4 blocks in 208 characters, and those at the end of the slice before, which are open.
  expect(Math.max(...fresh)).toBeLessThan(135);
  const rawOf = (blocks: ReturnType<typeof parse>) => blocks.map(({ raw }) => raw).join('');
  expect(rawOf(parse(long))).toBe(long);
  expect(parse(long).length).toBe(createBlockParser()(long).length);
});

test('a text without paragraphs is cut anyway', () => {
  expect(endsOf('x'.repeat(sliceLength * 2 + 1))).toEqual([sliceLength, sliceLength * 2, sliceLength * 2 + 1]);
});

test('what is drawn of an answer that is written never becomes less', () => {
  for (const step of [70, 900, sliceLength / 2, sliceLength, 20_000]) {
    let drawn = 0;
    let shown = 0;
    for (let length = step; length < 60_000; length += step) {
      const end = nextEnd(long.slice(0, length), drawn);
      expect(end).toBeGreaterThanOrEqual(shown);
      shown = end;
      if (end < length || end - drawn > sliceLength / 2) drawn = end;
    }
  }
});
