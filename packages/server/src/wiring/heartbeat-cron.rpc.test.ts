import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeProvider } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CronServer, openCron } from '../features/unattended/cron/testing/open-cron.ts';

let homeDir: string;
let server: CronServer;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-beat-cron-'));
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

const day = 86_400_000;
const daily = { kind: 'every', everyMs: day } as const;
type Config = NonNullable<Parameters<typeof openCron>[0]>['config'];
const agents = { default: { model: 'mock/mock-fast', heartbeat: { enabled: true, intervalMs: day } } };
const start = async (config: Config = { agents }) => (server = await openCron({ homeDir, config }));
const bodies = () => server.provider.requests.map(({ body }) => JSON.stringify(body));
async function runJob(jobName: string, count = 1) {
  await server.client.call('cron.run', { jobName });
  return (await server.runs(jobName, count))[0];
}
async function beat() {
  const ended = server.heard('scheduler:heartbeat_wake_terminal');
  await expect.poll(() => (server.clock.advance(250), ended.length), { interval: 5 }).toBe(1);
  return ended[0];
}
const queued = async () => (await server.client.call('heartbeat.states')).agents[0]?.queuedEvents;

test('the next beat gets the answer of a job with heartbeat_excerpt, fenced, once; not a silent answer, another mode or a failure', async () => {
  await start();
  const job = (name: string, continuationMode: 'heartbeat_excerpt' | 'none') =>
    server.client.call('cron.add', { name, schedule: daily, payload: { kind: 'agent_turn', message: `Do ${name}` }, continuationMode });
  for (const name of ['report', 'silent', 'broken']) await job(name, 'heartbeat_excerpt');
  await job('alone', 'none');
  server.provider.queue({ text: `The disk is full. ${'x'.repeat(2_000)}` }, { text: 'NO_REPLY' }, { status: 400 }, { text: 'Nobody asks.' });
  for (const name of ['report', 'silent', 'broken', 'alone']) await runJob(name);
  expect(await queued()).toBe(1);
  // It waits for the next beat and requests none.
  server.clock.advance(60_000);
  expect(server.provider.served()).toBe(4);
  server.provider.queue({ text: 'HEARTBEAT_OK' }, { text: 'HEARTBEAT_OK' });
  await server.client.call('heartbeat.trigger', { agentId: 'default' });
  expect(await beat()).toMatchObject({ status: 'settled', eventCount: 1 });
  const body = bodies().at(-1) ?? '';
  expect(body).toMatch(/<<<UNTRUSTED-TEXT [^>]*cron[^>]*>>>[^<]*Job \\"report\\" ended: The disk is full\./);
  expect(body).not.toContain('x'.repeat(1_001));
  expect(body).not.toContain('Nobody asks.');
  expect(await queued()).toBe(0);
});

test('an event of a job with wakeMode now wakes the agent at once, past the 30 s and never past the flood cap; next-heartbeat waits', async () => {
  await start();
  server.provider.setAnswer(() => ({ text: 'HEARTBEAT_OK' }));
  const add = (name: string, wakeMode?: 'now' | 'next-heartbeat') =>
    server.client.call('cron.add', {
      name,
      schedule: daily,
      payload: { kind: 'heartbeat_event', text: `Look at ${name}.`, ...(wakeMode !== undefined && { wakeMode }) },
    });
  await add('now', 'now');
  await add('later');
  const admitted = server.heard('scheduler:heartbeat_wake_admitted');
  const deferred = server.heard('scheduler:heartbeat_wake_deferred');
  expect(await runJob('later')).toMatchObject({ status: 'dispatched' });
  server.clock.advance(60_000);
  expect(server.provider.served()).toBe(0);
  expect(admitted).toEqual([]);
  for (let n = 1; n <= 5; n += 1) {
    await runJob('now', n);
    expect(await beat()).toMatchObject({ status: 'settled', eventCount: n === 1 ? 2 : 1 });
    expect(server.provider.served()).toBe(n);
  }
  expect(deferred).toEqual([]);
  expect(admitted[0]).toMatchObject({ retainedReason: 'cron', lane: 'normal' });
  expect(bodies()[0]).toMatch(/Look at later\.[\s\S]*Look at now\./);
  await runJob('now', 6);
  await expect.poll(() => (server.clock.advance(50), deferred)).toMatchObject([{ reason: 'flood_deferred' }]);
  expect(server.provider.served()).toBe(5);
  expect(await queued()).toBe(1);
  server.clock.advance(60_000);
  expect(await beat()).toMatchObject({ status: 'settled', eventCount: 1 });
});

test('an event of an agent with a disabled heartbeat wakes nobody and calls no model', async () => {
  await start({ agents: { default: { model: 'mock/mock-fast' } } });
  await server.client.call('cron.add', { name: 'now', schedule: daily, payload: { kind: 'heartbeat_event', text: 'Look.', wakeMode: 'now' } });
  expect(await runJob('now')).toMatchObject({ status: 'dispatched' });
  server.clock.advance(day / 2);
  expect(server.provider.served()).toBe(0);
});

test.each([
  ['none', 'none', undefined],
  ['short', 'short', { type: 'ephemeral' }],
  ['long', 'long', { type: 'ephemeral', ttl: '1h' }],
  ['none named, so that of the agent holds', undefined, { type: 'ephemeral', ttl: '1h' }],
] as const)('cacheRetention of a job: %s', async (_, cacheRetention, mark) => {
  const provider = await startFakeProvider();
  await start({
    providers: { claude: { type: 'anthropic', baseUrl: provider.url, apiKey: 'k', models: [{ id: 'claude-x' }] } },
    agents: { default: { model: 'claude/claude-x', cacheRetention: 'long' } },
  });
  await server.client.call('cron.add', {
    name: 'job',
    schedule: daily,
    payload: { kind: 'agent_turn', message: 'Work' },
    ...(cacheRetention !== undefined && { cacheRetention }),
  });
  expect(await runJob('job')).toMatchObject({ status: 'completed' });
  const text = JSON.stringify(provider.requests.at(-1)?.body);
  if (mark === undefined) expect(text).not.toContain('cache_control');
  else expect(text).toContain(`"cache_control":${JSON.stringify(mark)}`);
  await provider.close();
});

test('a rolling job is sent its last runs and no notes of earlier ones', async () => {
  await start();
  await server.client.call('cron.add', {
    name: 'job',
    schedule: daily,
    payload: { kind: 'agent_turn', message: 'Work' },
    sessionPolicy: { strategy: 'rolling', maxHistoryTurns: 20 },
  });
  server.provider.setAnswer(({ body }) => ({ text: JSON.stringify(body).includes('Work') ? `Done. ${'word '.repeat(400)}` : 'NOTES-OF-EARLIER' }));
  for (let n = 1; n <= 6; n += 1) await runJob('job', n);
  const [conversation] = (await server.client.call('session.list', {})).sessions;
  const conversationRef = conversation?.conversationRef ?? '';
  server.provider.setAnswer(() => ({ text: 'NOTES-OF-EARLIER' }));
  expect(await server.client.call('session.compact', { conversationRef })).toMatchObject({ method: 'summary' });
  await runJob('job', 7);
  const body = server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
  const users = body.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
  expect(users.length).toBeGreaterThan(1);
  expect(users.every((content) => content === 'Work')).toBe(true);
});
