import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const minute = 60_000;
const hour = 60 * minute;

let clock: StepClock;
let server: TestServer;
let homeDir: string;
beforeEach(async () => {
  clock = createStepClock(Date.UTC(2026, 9, 1, 12));
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-beat-'));
  const dir = join(homeDir, 'workspaces', 'default');
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'HEARTBEAT.md'), '- Look\n');
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

async function start(heartbeat: object = {}) {
  server = await startTestServer({
    clock,
    homeDir,
    config: { agents: { default: { model: 'mock/mock-fast', heartbeat: { enabled: true, ...heartbeat } } } },
  });
  server.provider.setAnswer(() => ({ text: 'HEARTBEAT_OK' }));
}
const stateOf = async () => (await server.client.call('heartbeat.states')).agents[0];
/** Advances the clock until `count` beats have ended. */
async function ended(count: number, stepMs: number) {
  const heard = server.heard('scheduler:heartbeat_wake_terminal');
  await expect.poll(() => (clock.advance(stepMs), heard.length), { interval: 5 }).toBeGreaterThanOrEqual(count);
  return heard;
}

test('a clock set back by a day delays neither beats by the interval nor pending ones', async () => {
  await start();
  await server.client.call('scheduler.wake', { target: 'agent' });
  clock.step(-24 * hour);
  const from = clock.monotonic();
  await ended(1, minute);
  // The clock advances while a beat runs: on a busy machine by hours.
  expect(clock.monotonic() - from).toBeLessThan(12 * hour);
  expect(((await stateOf())?.nextDueAtMs ?? 0) - clock.now()).toBeLessThanOrEqual(30 * minute);
  await ended(2, minute);
  expect(clock.monotonic() - from).toBeLessThan(23 * hour);
  expect(server.provider.served()).toBeGreaterThanOrEqual(3);
});

test('a backoff moved far ahead by a backward clock step does not exceed its longest step, and alerts continue', async () => {
  await start({ intervalMs: minute });
  server.provider.setAnswer(() => ({ status: 500 }));
  const alerts = server.heard('scheduler:heartbeat_alert');
  await ended(3, 10 * minute);
  await expect.poll(() => alerts.length).toBeGreaterThanOrEqual(1);
  const alertsBefore = alerts.length;
  clock.step(-48 * hour);
  const from = clock.monotonic();
  await ended(1, minute);
  await expect.poll(() => (clock.advance(minute), alerts.length), { interval: 5 }).toBeGreaterThan(alertsBefore);
  expect(clock.monotonic() - from).toBeLessThan(24 * hour);
});

test('late beats by the interval do not run outside the active hours; queued events stay queued', async () => {
  await start({ activeHours: { start: '08:00', end: '22:00' } });
  clock.step(12 * hour);
  const [skipped] = await ended(1, minute);
  expect(skipped).toMatchObject({ status: 'skipped' });
  expect(server.provider.served()).toBe(0);
  const due = (await stateOf())?.nextDueAtMs ?? 0;
  expect(new Date(due).getUTCHours()).toBe(8);
  await server.client.call('heartbeat.trigger', { agentId: 'default' });
  expect(await ended(1, 250)).toMatchObject([{ status: 'settled' }]);
});

test('a manually triggered beat ignores backoff, whatever it was merged with', async () => {
  await start({ intervalMs: 24 * hour });
  server.provider.setAnswer(() => ({ status: 500 }));
  await server.client.call('heartbeat.trigger', { agentId: 'default' });
  expect(await ended(1, 250)).toMatchObject([{ errorKind: 'server' }]);
  clock.advance(minute);
  await server.client.call('heartbeat.trigger', { agentId: 'default' });
  await ended(1, 250);
  server.provider.setAnswer(() => ({ text: 'HEARTBEAT_OK' }));
  const deferred = server.heard('scheduler:heartbeat_wake_deferred');
  await server.client.call('scheduler.wake', { target: 'agent' });
  clock.advance(31_000);
  await expect.poll(() => deferred.at(-1)?.reason).toBe('backoff');
  const backoffUntil = (await stateOf())?.backoffUntilMs ?? 0;
  const { admission } = await server.client.call('heartbeat.trigger', { agentId: 'default' });
  expect(admission).toMatchObject({ status: 'accepted', disposition: 'occurrence_upgraded', correlationId: deferred[0]?.correlationId });
  expect(await ended(1, 250)).toMatchObject([{ status: 'settled', correlationId: admission.correlationId }]);
  expect(clock.now()).toBeLessThan(backoffUntil);
});

test('an expired backoff is no longer shown', async () => {
  await start({ intervalMs: 24 * hour });
  server.provider.setAnswer(() => ({ status: 500 }));
  await server.client.call('heartbeat.trigger', { agentId: 'default' });
  await ended(1, 250);
  expect(await stateOf()).toMatchObject({ consecutiveErrors: 1, lastErrorKind: 'transient', backoffUntilMs: expect.any(Number) });
  clock.advance(30_000);
  expect(await stateOf()).toMatchObject({ consecutiveErrors: 1, lastErrorKind: 'transient', backoffUntilMs: null });
});

test('a manual trigger runs immediately, even right after a beat; a nudge keeps the thirty seconds', async () => {
  await start();
  const deferred = server.heard('scheduler:heartbeat_wake_deferred');
  for (const count of [1, 2]) {
    const from = clock.monotonic();
    await server.client.call('heartbeat.trigger', { agentId: 'default' });
    await ended(1, 250);
    expect([clock.monotonic() - from < 30_000, server.provider.served()]).toEqual([true, count]);
  }
  expect(deferred).toEqual([]);
  await server.client.call('scheduler.wake', { target: 'agent' });
  await ended(1, 1_000);
  expect(deferred).toMatchObject([{ reason: 'spacing_deferred' }]);
});
