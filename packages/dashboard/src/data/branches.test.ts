import { expect, test } from 'vitest';
import { familyOf } from './branches.ts';

test('a family is everything that was forked from the same conversation, directly or not', () => {
  const all = [
    { conversationRef: 'c', forkedFrom: 'b', createdAt: 3 },
    { conversationRef: 'b', forkedFrom: 'a', createdAt: 2 },
    { conversationRef: 'a', createdAt: 1 },
    { conversationRef: 'x', createdAt: 4 },
    // The original was deleted.
    { conversationRef: 'y', forkedFrom: 'gone', createdAt: 5 },
    { conversationRef: 'z', forkedFrom: 'gone', createdAt: 6 },
  ];
  expect(familyOf('b', all)).toEqual(['a', 'b', 'c']);
  expect(familyOf('x', all)).toEqual(['x']);
  expect(familyOf('z', all)).toEqual(['y', 'z']);
  expect(familyOf('unknown', all)).toEqual([]);
});
