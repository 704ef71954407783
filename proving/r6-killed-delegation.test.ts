import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveKilledDelegation } from './r6-killed-delegation.ts';

const seed = freshSeed();

test('parents, children, graphs and messages that are killed have one correct end each, and are announced once', async () => {
  const points = [
    'after the end of a run is committed',
    'between two attempts of a node',
    'while a gate is pending',
    'after a kill is committed',
  ] as const;
  const report = await proveKilledDelegation({ points, randomKills: 1, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.kills).toBe(5);
  expect(report.runs).toBeGreaterThan(20);
}, 180_000);
