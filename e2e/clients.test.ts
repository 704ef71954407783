import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drivers } from './lib/client-drivers.ts';
import { type ClientGround, startClientGround } from './lib/client-ground.ts';
import { installClients } from './lib/client-packages.ts';
import { isGoodDefault, runTask, runWithDefaultToken } from './lib/client-task.ts';

// One command line per wire, with a token of `gatehouse connect`; `npm run prove` runs all of them.

let ground: ClientGround;
beforeAll(async () => {
  ground = await startClientGround();
});
afterAll(() => ground[Symbol.asyncDispose]());

const perWire = drivers.filter(({ group }) => group !== 'more');

describe.each(perWire)('$id', (driver) => {
  test('does a task, and a default token gives it a way out', { timeout: 300_000 }, async ({ skip }) => {
    const found = await installClients(driver.group);
    if ('missing' in found) return skip(found.missing);
    const { done, wrong } = await runTask(ground, driver, found.dir);
    expect(wrong).toEqual([]);
    expect(done).toEqual(['file', 'answer', 'second turn']);
    const output = await runWithDefaultToken(ground, driver, found.dir);
    expect(isGoodDefault(driver, output), output).toBe(true);
  });
});
