import { expect, test } from 'vitest';
import { Roster } from './roster.ts';

test('members leave in any order, each once', () => {
  const roster = new Roster<string>();
  const leave = new Map(['a', 'b', 'c', 'd'].map((name) => [name, roster.join(name)]));
  leave.get('b')?.();
  leave.get('b')?.();
  leave.get('d')?.();
  expect(roster.members().toSorted()).toEqual(['a', 'c']);
  const leaveE = roster.join('e');
  leave.get('a')?.();
  expect(roster.members().toSorted()).toEqual(['c', 'e']);
  leave.get('c')?.();
  leaveE();
  expect(roster.size).toBe(0);
});

test('the same value can be present twice', () => {
  const roster = new Roster<string>();
  const first = roster.join('a');
  roster.join('a');
  first();
  first();
  expect(roster.members()).toEqual(['a']);
});
