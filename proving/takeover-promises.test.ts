import { findPostgres } from '@gatehouse/testkit/postgres';
import { describe, expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { freshSeed } from './lib/random.ts';
import { fewNodeCells } from './r32-nodes.ts';
import { proveTakeoverPromises } from './takeover-promises.ts';

const seed = freshSeed();
const isPossible = findPostgres() !== undefined && findCommand('bwrap') !== undefined;
const withinMs = 60_000;
const deaths = [{ by: 'kill', lapses: true }] as const;

describe.runIf(isPossible)('a daemon that takes over', () => {
  test('keeps the stops that the killed one had acknowledged, and knows the webhooks that it had accepted', async () => {
    const stops = { cells: fewNodeCells, controls: ['looping graph', 'looping webhook'] } as const;
    const { wrong, ...report } = await proveTakeoverPromises({ deaths, stops, replays: { honest: 3, forgeries: 20 }, withinMs, seed });
    expect(wrong, `seed ${seed}`).toEqual([]);
    expect(report).toMatchObject({ stops: fewNodeCells.length, resumed: 2, honest: 6 });
  });
});
