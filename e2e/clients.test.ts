import { beforeAll, describe, test } from 'vitest';
import { drivers } from './lib/client-drivers.ts';
import { startClientSetup } from './lib/client-setup.ts';
import { type Installed, installClients, type PackageGroup } from './lib/client-packages.ts';
import { isGoodDefault, runTask, runWithDefaultToken } from './lib/client-task.ts';

// One command line per wire, with a token of `gatehouse connect`; `npm run prove` runs all of them.

const perWire = drivers.filter(({ group }) => group !== 'more');
const packages = new Map<PackageGroup, Installed>();
beforeAll(async () => {
  await Promise.all(perWire.map(async ({ group }) => packages.set(group, await installClients(group))));
}, 300_000);

describe.concurrent.each(perWire)('$id', (driver) => {
  test('completes a task, and explains what to do about a default token', { timeout: 120_000 }, async ({ skip, expect }) => {
    const found = packages.get(driver.group) ?? { missing: 'not installed' };
    if ('missing' in found) return skip(found.missing);
    await using setup = await startClientSetup();
    const { done, wrong } = await runTask(setup, driver, found.dir);
    expect(wrong).toEqual([]);
    expect(done).toEqual(['file', 'answer', 'second turn']);
    const output = await runWithDefaultToken(setup, driver, found.dir);
    expect(isGoodDefault(driver, output), output).toBe(true);
  });
});
