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

  test('is caught when stops, or what was accepted, are in the memory of the killed one alone', async () => {
    const cells = fewNodeCells.filter(({ work }) => work.startsWith('looping'));
    const broken = ['stops-in-memory', 'deliveries-of-one-process'];
    const { wrong } = await proveTakeoverPromises({ deaths, stops: { cells, controls: [] }, replays: { honest: 3, forgeries: 0 }, seed, broken });
    const found = wrong.join('\n');
    // Whether the killed one had time to end the work is left to chance.
    for (const finding of [
      'run.kill × looping graph: its root run is ',
      'tokens.revoke × looping job: the token opens something',
      'agents.suspend × looping webhook: the agent answers',
      'session.delete × looping session.send: the conversation is there',
      '2 turns instead of 1',
    ])
      expect(found, `seed ${seed}`).toContain(finding);
  });
});
