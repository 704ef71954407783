import { expect, test } from 'vitest';
import { proveKilledTurns } from './r6-killed-turns.ts';

test('a killed turn is resumed or marked unknown', async () => {
  const report = await proveKilledTurns({
    points: ['after the acceptance', 'after a finished step', 'after a tool that runs once', 'after the end is committed'],
  });
  expect(report).toEqual({ kills: 4, resumed: 3, unknown: 1, gone: [], wrong: [], unannounced: [] });
}, 180_000);
