import { expect, test } from 'vitest';
import { summarize } from './summary.ts';

test.each([
  [{ message: { id: 'm', text: 'Hello\n  there' }, agentId: 'default', sessionKey: 'a:b' }, 'Hello there · default · a:b'],
  [{ actionType: 'tokens.create', outcome: 'success', target: 'ci', timestamp: 1 }, 'tokens.create · success · ci'],
  [{ provider: 'local', model: 'm', tokens: { total: 12 } }, 'local · m · 12 tokens'],
  [{ activeTurns: 2, rssBytes: 1 }, '2 active turns'],
  [{ content: 'x'.repeat(500) }, `${'x'.repeat(119)}…`],
  [{ timestamp: 1 }, ''],
  [null, 'null'],
  ['word', 'word'],
])('summarizes %j as %s', (payload, text) => {
  expect(summarize(payload)).toBe(text);
});
