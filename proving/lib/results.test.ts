import { expect, test } from 'vitest';
import { formatResults, parseResults } from './results.ts';

test('the report is read as it was written', () => {
  const outcomes = [
    { id: 'r1', promise: 'Writes survive', figure: '3 kills (a | b): 0 lost', caught: '2 lost', good: true, seconds: 12, commit: '0123456789ab' },
    { id: 'r26-paths', promise: 'Paths', figure: 'x', caught: '-', good: false, seconds: 0, commit: 'unknown' },
  ];
  expect(parseResults(formatResults(outcomes))).toEqual(outcomes);
  expect(parseResults('| R1 | holds | without a commit | a | b | 3 s |\n')).toEqual([]);
});
