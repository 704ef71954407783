import type { LogLine } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import { joinLines } from './use-daemon-log.ts';

const line = (id: number): LogLine => ({ id, timestamp: id, level: 'info', message: `m${id}`, fields: {} });
const ids = (lines: readonly LogLine[]) => lines.map(({ id }) => id);

test('lines of two readings are joined in order, each once, and the oldest beyond the limit are dropped', () => {
  expect(ids(joinLines([line(1), line(2)], [line(2), line(4), line(3)]))).toEqual([1, 2, 3, 4]);
  const before = [line(5)];
  expect(joinLines(before, [line(4), line(5)])).toBe(before);
  const many = joinLines(
    [line(1)],
    Array.from({ length: 1500 }, (_, at) => line(at + 2)),
  );
  expect([many.length, many[0]?.id, many.at(-1)?.id]).toEqual([1000, 502, 1501]);
});
