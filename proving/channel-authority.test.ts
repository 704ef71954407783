import { expect, test } from 'vitest';
import { proveChannelAuthority } from './channel-authority.ts';

test('over a channel, owners act, an owner decides about what others ask for, and strangers are refused or not seen', async () => {
  const report = await proveChannelAuthority({
    places: [
      'an owner, directly',
      'an owner in a group after somebody else',
      'a paired person, directly',
      'anybody in a group',
      'somebody unknown, directly',
    ],
    acts: ['a job', 'another agent'],
  });
  expect(report).toEqual({ cells: { done: 5, refused: 2, unseen: 2, asks: 4 }, tries: 10, wrong: [] });
}, 180_000);
