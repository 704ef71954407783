import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveKilledTeams } from './r6-killed-teams.ts';

const seed = freshSeed();

test('of what was killed under parents, children, graphs and messages each has one true end, and is told once', async () => {
  const points = ['after the end of a run is committed', 'between two tries of a node', 'while a gate asks', 'after a kill is committed'] as const;
  const report = await proveKilledTeams({ points, randomKills: 1, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.kills).toBe(5);
  expect(report.runs).toBeGreaterThan(20);
}, 180_000);

test('a build in which one step of a graph may be begun twice is caught', async () => {
  const { wrong } = await proveKilledTeams({ points: ['after a node has begun a run'], randomKills: 0, seed, broken: 'no-run-key' });
  expect(wrong.join('\n'), `seed ${seed}`).toMatch(/twice: node .* has \d+ runs after \d+ tries, not \d+/);
}, 180_000);
