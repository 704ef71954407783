import { expect, test } from 'vitest';
import type { FeedEntry } from './live.ts';
import { createTurnIds } from './turn-ids.ts';

test('keeps the newest turn of each conversation, of the newest conversations', () => {
  let hear: (entry: FeedEntry) => void = () => {};
  const turns = createTurnIds({ listen: (onEvent) => ((hear = onEvent), () => {}) });
  const received = (sessionKey: string, turnId: unknown, kind = 'message:received') =>
    hear({ number: 1, kind, atMs: 0, payload: { agentId: 'default', sessionKey, turnId } });
  received('ada:web', 'tn_1');
  received('ada:web', 'tn_2');
  received('ada:web', 'tn_3', 'message:sent');
  received('ada:web', 7);
  expect(turns.get().get('default ada:web')).toEqual({ turnId: 'tn_2', heardAtMs: expect.any(Number) });
  for (let at = 0; at < 60; at += 1) received(`ada:${at}`, `tn_${at}`);
  expect([turns.get().size, turns.get().has('default ada:web'), turns.get().has('default ada:59')]).toEqual([40, false, true]);
});
