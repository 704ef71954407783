import { expect, test } from 'vitest';
import { proveChannelAuthority } from './channel-authority.ts';

test('over a channel, owners act, an owner decides about what others ask for, and strangers are refused or not seen', async () => {
  const report = await proveChannelAuthority({
    origins: ['an owner, directly', 'a paired person, directly', 'anybody in a group', 'somebody unknown, directly'],
    acts: ['a job', 'another agent'],
  });
  expect(report).toEqual({ cells: { done: 4, refused: 2, unseen: 2, asks: 2 }, tries: 4, wrong: [] });
}, 180_000);
