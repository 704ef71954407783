import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { endStartMemory } from './start-memory.ts';

test.each([
  { share: 0.05, does: ['end', 'collect'], what: 'returned a second after the start' },
  { share: 0.2, does: ['end'], what: 'kept when the daemon works by then, also when it is idle later' },
])('memory that only the start needed is $what', ({ share, does }) => {
  const clock = createStepClock();
  const shares = [share];
  const calls: string[] = [];
  endStartMemory({ clock, busyShare: () => shares.shift() ?? 0, collect: () => calls.push('collect'), onEnd: () => calls.push('end') });
  expect(calls).toEqual([]);
  clock.advance(1000);
  expect(calls).toEqual(does);
  clock.advance(10_000);
  expect(calls).toEqual(does);
});
