import { expect, test } from 'vitest';
import { namesOf } from './agent-names.ts';

test('agents are shown by their names; equal names have their ids next to them, and the usual one is not shown', () => {
  const names = namesOf([
    { id: 'default', name: 'Gate' },
    { id: 'ops', name: 'Olga' },
    { id: 'a', name: 'Ada' },
    { id: 'b', name: 'Ada' },
  ]);
  expect([...names]).toEqual([
    ['ops', 'Olga'],
    ['a', 'Ada (a)'],
    ['b', 'Ada (b)'],
  ]);
});
