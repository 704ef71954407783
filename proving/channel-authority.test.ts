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
    acts: ['a job', 'a message to somebody else', 'another agent'],
  });
  expect(report).toEqual({ cells: { done: 4, refused: 4, unseen: 3, asks: 2, 'asks in vain': 2 }, tries: 2, wrong: [] });
}, 180_000);
