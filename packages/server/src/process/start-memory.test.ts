import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { endStartMemory } from './start-memory.ts';

test('memory that only the start needed is returned once, in the first idle second', () => {
  const clock = createStepClock();
  const shares = [0.6, 0.2, 0.05];
  const calls: string[] = [];
  endStartMemory({ clock, busyShare: () => shares.shift() ?? 0, collect: () => calls.push('collect'), onEnd: () => calls.push('end') });
  expect(calls).toEqual([]);
  clock.advance(1000);
  expect(calls).toEqual(['end']);
  clock.advance(1000);
  expect(calls).toEqual(['end']);
  clock.advance(1000);
  expect(calls).toEqual(['end', 'collect']);
  clock.advance(10_000);
  expect(calls).toEqual(['end', 'collect']);
});
