import { existsSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type FakeAnswer, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

const minute = 60_000;
const day = 24 * 60 * minute;

let clock: StepClock;
let server: TestServer;
let homeDir: string;
let answer: FakeAnswer;

async function start() {
  server = await startTestServer({
    clock,
    homeDir,
    provider: { answer: () => answer },
    config: {
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' as const }, heartbeat: { enabled: true, intervalMs: day } } },
      webhooks: { mappings: [{ id: 'hook', action: 'wake', agentId: 'default', messageTemplate: '{{text}}' }] },
    },
  });
}

beforeAll(async () => {
  clock = createStepClock();
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-owed-'));
  await start();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});
beforeEach(() => {
  answer = { text: 'HEARTBEAT_OK' };
  // Beyond the cap on beats in a minute.
  clock.advance(2 * minute);
});

let jobs = 0;
/** Queues an event by a job that runs once. */
async function event(text: string, wakeMode: 'now' | 'next-heartbeat' = 'now') {
  const name = `event-${(jobs += 1)}`;
  const heard = server.heard('scheduler:cron_execution_terminal');
  await server.client.call('cron.add', { name, schedule: { kind: 'every', everyMs: day }, payload: { kind: 'heartbeat_event', text, wakeMode } });
  await server.client.call('cron.run', { jobName: name });
  await expect.poll(() => heard.length).toBe(1);
}
/** Steps until this many beats have ended. */
async function beats(count: number, stepMs = 250) {
  const ended = server.heard('scheduler:heartbeat_wake_terminal');
  await expect.poll(() => (clock.advance(stepMs), ended.length), { interval: 5 }).toBeGreaterThanOrEqual(count);
  return ended;
}
const state = async () => (await server.client.call('heartbeat.states')).agents[0];
const lastQuestion = () => JSON.stringify(server.provider.requests.at(-1)?.body ?? '');
const refused: FakeAnswer = { status: 401, error: { message: 'no such key' } };

/** A beat with an event that the provider refused. */
async function owe(how: FakeAnswer = refused) {
  answer = how;
  await event('The mail came.');
  await beats(1);
  expect(await state()).toMatchObject({ queuedEvents: 1, consecutiveErrors: 1 });
}

describe('events of a beat that the provider refused', () => {
  test.each([
    ['auth', refused],
    ['server', { status: 500 }],
  ] satisfies [string, FakeAnswer][])('(%s) are delivered at once after providers.retry', async (_kind, how) => {
    await owe(how);
    answer = { text: 'HEARTBEAT_OK' };
    const from = clock.now();
    await server.client.call('providers.retry', { provider: 'mock' });
    expect(await beats(1, 10)).toMatchObject([{ status: 'settled', eventCount: 1 }]);
    expect(clock.now() - from).toBeLessThan(10_000);
    expect(lastQuestion()).toContain('The mail came.');
    expect(await state()).toMatchObject({ queuedEvents: 0, stoppedBy: null, consecutiveErrors: 0, nextDueAtMs: expect.any(Number) });
  });

  test('are delivered once the model answers another caller', async () => {
    await owe();
    answer = { text: 'HEARTBEAT_OK' };
    await server.client.call('agent.execute', { message: 'Hello' });
    expect(await beats(1)).toMatchObject([{ status: 'settled', eventCount: 1 }]);
    expect(lastQuestion()).toContain('The mail came.');
  });

  test('are delivered within minutes when nobody else asks; an outage of hours alerts once an hour', async () => {
    const alerts = server.heard('scheduler:heartbeat_alert');
    await owe({ status: 500 });
    await event('The post came.', 'next-heartbeat');
    const from = clock.now();
    while (clock.now() - from < 90 * minute) await beats(1, 60_000);
    expect(alerts.length).toBeLessThanOrEqual(4);
    answer = { text: 'HEARTBEAT_OK' };
    const recovered = clock.now();
    expect(await beats(1, 5_000)).toMatchObject([{ status: 'settled', eventCount: 2 }]);
    expect(clock.now() - recovered).toBeLessThan(30 * minute);
    expect(lastQuestion()).toContain('The mail came.');
    expect(lastQuestion()).toContain('The post came.');
  });

  test('that are queued while refused credentials stop the beats are delivered when the model is tried again', async () => {
    answer = refused;
    await server.client.call('workspace.writeFile', { agentId: 'default', filePath: 'HEARTBEAT.md', content: '- Look' });
    await server.client.call('heartbeat.trigger', { agentId: 'default' });
    await beats(1);
    expect(await state()).toMatchObject({ stoppedBy: 'auth', queuedEvents: 0 });
    await event('The post came.', 'next-heartbeat');
    answer = { text: 'HEARTBEAT_OK' };
    const from = clock.now();
    await expect.poll(async () => (clock.advance(10_000), (await state())?.queuedEvents), { interval: 5 }).toBe(0);
    expect(clock.now() - from).toBeLessThan(day / 4);
    expect(lastQuestion()).toContain('The post came.');
    await server.client.call('workspace.writeFile', { agentId: 'default', filePath: 'HEARTBEAT.md', content: '' });
  });

  test('are delivered after a restart', async () => {
    await owe();
    await server[Symbol.asyncDispose]();
    answer = { text: 'HEARTBEAT_OK' };
    await start();
    expect(await beats(1, 10_000)).toMatchObject([{ status: 'settled', eventCount: 1 }]);
    expect(lastQuestion()).toContain('The mail came.');
  });

  test('wait for a suspended agent', async () => {
    await owe();
    await server.client.call('agents.suspend', { agentId: 'default' });
    answer = { text: 'HEARTBEAT_OK' };
    const served = server.provider.served();
    await server.client.call('providers.retry', { provider: 'mock' });
    clock.advance(60 * minute);
    expect(await state()).toMatchObject({ queuedEvents: 1 });
    expect(server.provider.served()).toBe(served);
    await server.client.call('agents.resume', { agentId: 'default' });
    expect(await beats(1)).toMatchObject([{ status: 'settled', eventCount: 1 }]);
  });

  test('are deleted with their agent', async () => {
    await server.client.call('agents.create', {
      agentId: 'other',
      config: { model: 'mock/mock-fast', heartbeat: { enabled: true, intervalMs: day } },
    });
    answer = refused;
    await server.client.call('cron.add', {
      name: 'others',
      agentId: 'other',
      schedule: { kind: 'every', everyMs: day },
      payload: { kind: 'heartbeat_event', text: 'The mail came.', wakeMode: 'now' },
    });
    await server.client.call('cron.run', { jobName: 'others' });
    await beats(1);
    await server.client.call('agents.delete', { agentId: 'other' });
    answer = { text: 'HEARTBEAT_OK' };
    const served = server.provider.served();
    await server.client.call('providers.retry', { provider: 'mock' });
    clock.advance(60 * minute);
    expect((await server.client.call('heartbeat.states')).agents.map(({ agentId }) => agentId)).toEqual(['default']);
    expect(server.provider.served()).toBe(served);
  });
});

describe('an event taints the beat that delivers it', () => {
  const writes: FakeAnswer = { toolCalls: [{ id: 'c1', name: 'write', arguments: JSON.stringify({ path: 'output/beat.txt', content: 'x' }) }] };
  const hook = async () => void (await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'A letter came.' }, run: true }));
  const file = () => join(homeDir, 'workspaces', 'default', 'output', 'beat.txt');

  test.each([
    ['not when a job of its owner queued it', async () => event('Water the plants.'), true],
    [
      'when one of several is untrusted',
      async () => {
        await event('Water the plants.', 'next-heartbeat');
        await hook();
      },
      false,
    ],
  ])('%s', async (_title, queue, isClean) => {
    rmSync(file(), { force: true });
    const before = server.provider.served();
    const ended = server.heard('scheduler:heartbeat_wake_terminal');
    server.provider.queue(writes);
    await queue();
    await expect.poll(() => (clock.advance(250), server.provider.served()), { interval: 5 }).toBeGreaterThan(before);
    await expect
      .poll(
        async () =>
          existsSync(file()) || (await server.client.call('admin.approval.pending', {})).requests.length > 0 || server.provider.served() > before + 1,
      )
      .toBe(true);
    expect(existsSync(file())).toBe(isClean);
    await server.client.call('admin.approval.resolveAll', { approved: false });
    // The next beat must not meet what is left of this one.
    await expect.poll(() => ended.length).toBe(1);
  });
});
