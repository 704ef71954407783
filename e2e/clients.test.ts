import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drivers } from './lib/client-drivers.ts';
import { type ClientGround, startClientGround } from './lib/client-ground.ts';
import { type Installed, installClients, type PackageGroup } from './lib/client-packages.ts';
import { isGoodDefault, runTask, runWithDefaultToken } from './lib/client-task.ts';

// One command line per wire, with a token of `gatehouse connect`; `npm run prove` runs all of them.

const perWire = drivers.filter(({ group }) => group !== 'more');
const packages = new Map<PackageGroup, Installed>();
let ground: ClientGround;
beforeAll(async () => {
  const installs = perWire.map(async ({ group }) => packages.set(group, await installClients(group)));
  ground = await startClientGround();
  await Promise.all(installs);
}, 300_000);
afterAll(() => ground[Symbol.asyncDispose]());

describe.each(perWire)('$id', (driver) => {
  test('does a task, and a default token gives it a way out', { timeout: 120_000 }, async ({ skip }) => {
    const found = packages.get(driver.group) ?? { missing: 'not installed' };
    if ('missing' in found) return skip(found.missing);
    const { done, wrong } = await runTask(ground, driver, found.dir);
    expect(wrong).toEqual([]);
    expect(done).toEqual(['file', 'answer', 'second turn']);
    const output = await runWithDefaultToken(ground, driver, found.dir);
    expect(isGoodDefault(driver, output), output).toBe(true);
  });
});
