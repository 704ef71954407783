import { expect, test } from 'vitest';
import { killedOn } from './killed-channels.ts';

test('a message of Telegram is answered once after a kill, or its answer is unknown', async () => {
  const report = await killedOn('telegram', { points: ['received', 'committed', 'turn running', 'answer read'] });
  expect(report).toEqual({ kills: 4, answered: 3, unknown: 1, gone: 0, wrong: [] });
}, 180_000);

test('a message of Matrix is answered once after a kill', async () => {
  const report = await killedOn('matrix', { points: ['received', 'request written'] });
  expect(report).toEqual({ kills: 2, answered: 2, unknown: 0, gone: 0, wrong: [] });
}, 180_000);
