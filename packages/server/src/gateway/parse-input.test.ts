import { contract } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import { parseInput } from './parse-input.ts';

test('an object instead of a text is refused, whatever its length is', () => {
  const key = { userId: 'a', channelId: { length: { valueOf: 1, toString: 1 } }, peerId: 'b' };
  expect(() => parseInput(contract['admin.approval.clearDenialCache'].params, { sessionKey: key })).toThrow(
    expect.objectContaining({ code: 'invalid_params' }),
  );
});
