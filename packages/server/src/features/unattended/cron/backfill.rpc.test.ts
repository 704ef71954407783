import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { type CronServer, openCron } from './testing/open-cron.ts';

const open: AsyncDisposable[] = [];
const homes: string[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
  for (const home of homes.splice(0)) await rm(home, { recursive: true, force: true });
});

async function start(options: Parameters<typeof openCron>[0] = {}): Promise<CronServer> {
  const server = await openCron(options);
  open.push(server);
  return server;
}

async function stop(server: CronServer): Promise<void> {
  open.splice(open.indexOf(server), 1);
  await server[Symbol.asyncDispose]();
}

const hourMs = 3_600_000;
/** Noon, at which the servers start. */
const startMs = Date.UTC(2026, 8, 21, 12);
const hourly = { kind: 'cron', expr: '0 * * * *', tz: 'UTC' } as const;
const at = (...hours: number[]) => hours.map((hour) => startMs + hour * hourMs);
const range = (from: number, to: number) => ({ fromMs: startMs + from * hourMs, toMs: startMs + to * hourMs });
const message = 'Write the report.';

async function add(server: CronServer, name = 'report', payload: object = { kind: 'agent_turn', message }): Promise<string> {
  return (await server.client.call('cron.add', { name, schedule: hourly, payload: payload as { kind: 'agent_turn'; message: string } })).jobId;
}

/** Returns the times of all runs in the order in which they began, skipped ones left out. */
async function ran(server: CronServer, jobName = 'report'): Promise<number[]> {
  const { runs } = await server.client.call('cron.runs', { jobName, limit: 1_000 });
  return runs
    .filter(({ status }) => status !== 'skipped')
    .map(({ scheduledForMs }) => scheduledForMs)
    .reverse();
}

const idle = (server: CronServer, count: number, jobName = 'report') => expect.poll(async () => (await server.ended(jobName)).length).toBe(count);

test('the times of a range run once each, from the oldest to the newest, and say which time they are for', async () => {
  const server = await start();
  await add(server);
  const audited = server.heard('audit:event');
  audited.length = 0;
  const dry = await server.client.call('cron.backfill', { jobName: 'report', ...range(-3, 0), dryRun: true });
  expect(dry).toEqual({
    jobName: 'report',
    resolvedAgentId: 'default',
    dryRun: true,
    timesMs: at(-3, -2, -1, 0),
    more: false,
    costUsd: null,
  });
  expect((await server.client.call('cron.runs', { jobName: 'report' })).runs).toEqual([]);
  const first = await server.client.call('cron.backfill', { jobName: 'report', ...range(-3, 0), limit: 3 });
  expect(first).toMatchObject({ dryRun: false, timesMs: at(-3, -2, -1), more: true });
  await idle(server, 3);
  expect(await ran(server)).toEqual(at(-3, -2, -1));
  expect(await server.ended('report')).toMatchObject(Array.from({ length: 3 }, () => ({ trigger: 'catchup', status: 'completed' })));
  expect(JSON.stringify(server.provider.requests[0]?.body)).toContain('for the scheduled time 2026-09-21T09:00:00.000Z');
  // The rest of the range, and then nothing.
  expect((await server.client.call('cron.backfill', { jobName: 'report', ...range(-3, 5) })).timesMs).toEqual(at(0));
  await idle(server, 4);
  const none = await server.client.call('cron.backfill', { jobName: 'report', ...range(-3, 0) });
  expect(none).toMatchObject({ timesMs: [], more: false, costUsd: 0 });
  // The next time of the job is not affected.
  await server.pass(hourMs);
  await idle(server, 5);
  expect((await ran(server)).at(-1)).toBe(startMs + hourMs);
  expect(audited).toMatchObject([{ metadata: { times: 3 } }, { metadata: { times: 1 } }]);
});

test('without a range the missed times run, after a restart in the middle, each once', async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-backfill-'));
  homes.push(homeDir);
  const clock: StepClock = createStepClock(startMs);
  const first = await start({ homeDir, clock });
  await add(first);
  await stop(first);
  clock.advance(5 * hourMs + 1);
  // It was down for five hours: one run catches up, four times are missed.
  const second = await start({ homeDir, clock });
  await second.runs('report', 5);
  expect(await ran(second)).toEqual(at(5));
  second.provider.queue({ text: 'One.' }, { hang: true });
  expect((await second.client.call('cron.backfill', { jobName: 'report' })).timesMs).toEqual(at(1, 2, 3, 4));
  expect((await second.client.call('cron.backfill', { jobName: 'report' })).timesMs).toEqual([]);
  // The second of the four hangs.
  await expect.poll(() => second.provider.requests.length).toBe(3);
  await stop(second);
  const third = await start({ homeDir, clock });
  await idle(third, 9);
  expect((await ran(third)).toSorted()).toEqual(at(1, 2, 3, 4, 5));
  expect((await third.client.call('cron.backfill', { jobName: 'report' })).timesMs).toEqual([]);
});

test('queued times wait while the agent is suspended, and are dropped when a budget is exhausted', async () => {
  const server = await start({
    config: { agents: { default: { model: 'mock/mock-fast' }, scout: { model: 'mock/mock-fast', budgets: { perDayTokens: 60_000 } } } },
  });
  const { client, provider } = server;
  await client.call('cron.add', { name: 'report', agentId: 'scout', schedule: hourly, payload: { kind: 'agent_turn', message } });
  const first = Promise.withResolvers<void>();
  provider.queue({ text: 'One.', after: first.promise });
  await client.call('cron.backfill', { jobName: 'report', ...range(-4, -1) });
  await expect.poll(() => provider.requests.length).toBe(1);
  await client.call('agents.suspend', { agentId: 'scout' });
  first.resolve();
  await idle(server, 1);
  await expect(client.call('cron.backfill', { jobName: 'report', ...range(-6, -5) })).rejects.toMatchObject({ code: 'precondition_failed' });
  expect(provider.requests).toHaveLength(1);
  provider.queue({ text: 'Two.', usage: { input: 59_000, output: 1_000 } });
  await client.call('agents.resume', { agentId: 'scout' });
  await idle(server, 3);
  expect(await server.ended('report')).toMatchObject([{ errorKind: 'budget' }, { status: 'completed' }, { status: 'aborted' }]);
  // The last one was dropped, and can be requested again.
  expect((await client.call('cron.backfill', { jobName: 'report', ...range(-4, -1), dryRun: true })).timesMs).toEqual(at(-1));
});

test('strangers, jobs that run once, damaged ranges and a full queue are refused', async () => {
  const server = await start();
  const { client } = server;
  await add(server);
  await client.call('cron.add', { name: 'once', schedule: { kind: 'in', seconds: 60 }, payload: { kind: 'delivery', text: 'Ding' } });
  const stranger = await server.as(['rpc']);
  const refused = async (params: object, code: string, by: Pick<typeof client, 'call'> = client) =>
    expect(by.call('cron.backfill', { jobName: 'report', ...params }), JSON.stringify(params)).rejects.toMatchObject({ code });
  await refused({}, 'not_found', stranger);
  await refused({ jobName: 'once' }, 'precondition_failed');
  await refused({ toMs: startMs }, 'invalid_params');
  await refused({ fromMs: startMs, toMs: startMs - 1 }, 'invalid_params');
  await refused({ limit: 101 }, 'invalid_params');
  server.provider.setAnswer(() => ({ hang: true }));
  expect((await client.call('cron.backfill', { jobName: 'report', ...range(-200, 0), limit: 100 })).more).toBe(true);
  await refused(range(-200, 0), 'precondition_failed');
});

test('queued times of an agent that is deleted are gone, also for an agent and a job that get their names', async () => {
  const server = await start();
  const { client, provider } = server;
  const create = async () => {
    await client.call('agents.create', { agentId: 'scout', config: { model: 'mock/mock-fast' } });
    await client.call('cron.add', { name: 'report', agentId: 'scout', schedule: hourly, payload: { kind: 'agent_turn', message } });
  };
  await create();
  const first = Promise.withResolvers<void>();
  provider.queue({ text: 'One.', after: first.promise });
  await client.call('cron.backfill', { jobName: 'report', ...range(-4, -1) });
  await expect.poll(() => provider.requests.length).toBe(1);
  const deleted = client.call('agents.delete', { agentId: 'scout' });
  first.resolve();
  expect(await deleted).toMatchObject({ deleted: true });
  expect((await client.call('cron.list', {})).jobs).toEqual([]);
  await create();
  expect((await client.call('cron.backfill', { jobName: 'report', ...range(-4, -1), dryRun: true })).timesMs).toEqual(at(-4, -3, -2, -1));
  expect(provider.requests).toHaveLength(1);
});
