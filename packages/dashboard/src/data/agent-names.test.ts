import { expect, test } from 'vitest';
import { namesOf } from './agent-names.ts';

test('agents are shown by their names; equal names are told apart, and the usual one says nothing', () => {
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
