import { expect, test } from 'vitest';
import { ReadChanges } from './read-changes.ts';

const log = (...versions: number[]) => versions.map((version) => ({ version, seq: version * 10 }));
const seqs = (changes: readonly { readonly seq: number }[]) => changes.map(({ seq }) => seq);

test('with one writer only entries after the last one are read', () => {
  const changes = new ReadChanges();
  expect(seqs(changes.read(1, log(1, 2, 3)))).toEqual([10, 20, 30]);
  expect([changes.after, changes.hasMissed(4), changes.hasMissed(5)]).toEqual([3, false, true]);
  expect(seqs(changes.read(2, log(4)))).toEqual([40]);
  expect(changes.after).toBe(4);
});

test('an entry that becomes visible after others with higher versions is read once', () => {
  const changes = new ReadChanges();
  changes.read(1, log(1, 4, 5));
  expect(changes.after).toBe(1);
  expect(seqs(changes.read(1, log(3, 4, 5, 6)))).toEqual([30, 60]);
  expect(seqs(changes.read(1, log(2, 3, 4, 5, 6)))).toEqual([20]);
  expect(changes.after).toBe(6);
  expect(changes.read(1, [])).toEqual([]);
});

test('a version that is missing for good is given up with its neighbours, and the index is not built again', () => {
  const changes = new ReadChanges();
  changes.read(1, log(1, 3, 4));
  expect(changes.hasMissed(4)).toBe(false);
  expect(changes.read(4, log(4))).toEqual([]);
  expect(changes.after).toBe(4);
});
