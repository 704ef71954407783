import { describe, expect, it } from 'vitest';
import { createLoopDetector } from './loop-detection.ts';

function watch(steps: readonly (readonly [text: string, args: string, result: string])[]) {
  const detector = createLoopDetector();
  return steps.map(([text, args, result]) =>
    detector.observe({
      text,
      calls: [{ id: String(Math.random()), name: 'look', arguments: args }],
      results: [{ role: 'tool', content: result, toolCallId: String(Math.random()), toolName: 'look' }],
    }),
  );
}
const repeat = (round: readonly (readonly [string, string, string])[], times: number) => Array.from({ length: times }, () => round).flat();

describe('loop detection', () => {
  it('warns at the third and stops at the fifth repetition of a call with the same result', () => {
    expect(watch(repeat([['', 'a', 'r']], 5))).toEqual(['progress', 'progress', 'warn', 'warn', 'loop']);
  });

  it('detects rounds of two and three steps', () => {
    expect(
      watch(
        repeat(
          [
            ['', 'a', 'r'],
            ['', 'b', 's'],
          ],
          5,
        ),
      ).at(-1),
    ).toBe('loop');
    const three = watch(
      repeat(
        [
          ['', 'a', 'r'],
          ['', 'b', 's'],
          ['', 'c', 't'],
        ],
        5,
      ),
    );
    expect(three.at(-1)).toBe('loop');
    expect(three.slice(0, 8)).not.toContain('loop');
  });

  it('treats other arguments, other results and a change in between as progress', () => {
    expect(new Set(watch(Array.from({ length: 30 }, (_, index) => ['', `a${index}`, 'r'] as const)))).toEqual(new Set(['progress']));
    expect(new Set(watch(Array.from({ length: 30 }, (_, index) => ['', 'a', `r${index}`] as const)))).toEqual(new Set(['progress']));
    expect(
      new Set(
        watch(
          repeat(
            [
              ['', 'a', 'r'],
              ['', 'a', 'r'],
              ['', 'b', 's'],
              ['', 'c', 'u'],
            ],
            8,
          ),
        ),
      ),
    ).toEqual(new Set(['progress']));
  });

  it('stops when the same text repeats, whatever is called', () => {
    const verdicts = watch(Array.from({ length: 8 }, (_, index) => ['Let me try again.', `a${index}`, `r${index}`] as const));
    expect(verdicts).toEqual([...Array.from({ length: 7 }, () => 'progress'), 'loop']);
  });
});
