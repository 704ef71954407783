import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, sql } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { type CronServer, openCron } from '../testing/open-cron.ts';

const open: AsyncDisposable[] = [];
const homes: string[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
  for (const home of homes.splice(0)) await rm(home, { recursive: true, force: true });
});

const hourMs = 3_600_000;
const startMs = Date.UTC(2026, 8, 21, 12);
const hourly = { kind: 'every', everyMs: hourMs, anchorMs: startMs } as const;
const bell = { kind: 'delivery', text: 'Ding.' } as const;
const two = { config: { agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } } } };

async function start(options: Parameters<typeof openCron>[0] = {}): Promise<CronServer> {
  const server = await openCron({ clock: createStepClock(startMs), ...options });
  open.push(server);
  return server;
}

/** Writes directly to the database, as a disk fault or another tool would. */
const damage = ({ homeDir }: Pick<CronServer, 'homeDir'>, text: string) => sql(homeDir, text);

async function resetAll({ client }: CronServer) {
  const { store, ledger } = await client.call('cron.status', {});
  return client.call('cron.reset', { target: 'all', expectedDigests: { store: store.digest, ledger: ledger.digest }, confirmed: true });
}

test.each(['schedule_json', 'payload_json', 'policies_json'])(
  'a damaged row (%s) stops only the schedule of its agent, is reported, and a reset repairs it',
  async (column) => {
    const server = await start(two);
    const { call } = server.client;
    for (const agentId of ['default', 'other']) await call('cron.add', { name: 'bell', agentId, schedule: hourly, payload: bell });
    await damage(server, `UPDATE cron_job SET ${column} = '{"kind":' WHERE agent_id = 'default'`);
    await server.pass(hourMs + 1_000, 500_000);
    await expect.poll(async () => (server.clock.advance(200), (await call('cron.status', {})).state)).toBe('failed');
    expect(await call('cron.status', {})).toMatchObject({
      strictAuthoritiesValid: false,
      lastError: { code: 'snapshot_failed', errorKind: 'corrupt' },
    });
    await expect(call('cron.add', { name: 'another', schedule: hourly, payload: bell })).rejects.toMatchObject({ code: 'precondition_failed' });
    const other = (await call('cron.list', { agentId: 'other' })).jobs[0]?.id ?? '';
    expect(await server.runs(other)).toMatchObject([{ status: 'completed' }]);
    expect(await resetAll(server)).toMatchObject({ state: 'active', reactivated: false });
    expect((await call('cron.status', {})).lastError).toBeUndefined();
    await call('cron.add', { name: 'another', schedule: hourly, payload: bell });
    expect((await call('cron.list', { agentId: 'other' })).total).toBe(1);
  },
);

test('a job whose row is damaged while it runs still finishes, so that a reset can follow', async () => {
  const server = await start();
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Done.', after: answered.promise }));
  await server.client.call('cron.add', { name: 'slow', schedule: hourly, payload: { kind: 'agent_turn', message: 'Go' } });
  await server.pass(hourMs, 600_000);
  await expect.poll(() => (server.clock.advance(1), server.provider.requests.length)).toBe(1);
  await damage(server, `UPDATE cron_job SET policies_json = '{"max'`);
  answered.resolve();
  await expect.poll(async () => (await server.client.call('cron.status', {})).activeClaimCount).toBe(0);
  expect(await resetAll(server)).toMatchObject({ target: 'all' });
  expect((await server.client.call('cron.list', {})).total).toBe(0);
});

test('one damaged unfinished row does not stop the jobs of other agents', async () => {
  const home = await mkdtemp(join(tmpdir(), 'gatehouse-reset-'));
  homes.push(home);
  const clock = createStepClock(startMs);
  const first = await start({ ...two, homeDir: home, clock });
  first.provider.setAnswer(() => ({ hang: true }));
  await first.client.call('cron.add', { name: 'slow', schedule: hourly, payload: { kind: 'agent_turn', message: 'Go' } });
  await first.client.call('cron.add', { name: 'bell', agentId: 'other', schedule: hourly, payload: bell });
  await first.pass(hourMs, 600_000);
  await expect.poll(() => (clock.advance(1), first.provider.requests.length)).toBe(1);
  open.splice(open.indexOf(first), 1);
  await first[Symbol.asyncDispose]();
  await damage(first, `UPDATE cron_job SET policies_json = '{"max' WHERE name = 'slow'`);
  await damage(first, `UPDATE work_item SET state = 'failed', result_json = NULL`);
  const second = await start({ ...two, homeDir: home, clock });
  await expect.poll(async () => (await second.client.call('cron.status', { agentId: 'other' })).state).toBe('active');
  expect((await second.client.call('cron.status', {})).state).toBe('failed');
  await second.client.call('cron.run', { jobName: 'bell' });
  expect((await second.runs('bell')).length).toBeGreaterThan(0);
});

test('a reset waits for running jobs, and changes nothing when they do not finish', async () => {
  const server = await start();
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Done.', after: answered.promise }));
  const { call } = server.client;
  await call('cron.add', { name: 'slow', schedule: hourly, payload: { kind: 'agent_turn', message: 'Go' } });
  await call('cron.run', { jobName: 'slow' });
  await expect.poll(() => server.provider.requests.length).toBe(1);
  let refused: unknown;
  void resetAll(server).catch((error: unknown) => (refused = error));
  await expect.poll(async () => (await call('cron.status', {})).state).toBe('maintenance');
  await expect(call('cron.run', { jobName: 'slow' })).rejects.toMatchObject({ code: 'precondition_failed' });
  await expect(resetAll(server)).rejects.toMatchObject({ code: 'conflict' });
  // Its time begins behind the maintenance, when the database has answered.
  await expect.poll(() => (server.clock.advance(500), refused)).toMatchObject({ code: 'precondition_failed' });
  expect(await call('cron.status', {})).toMatchObject({
    state: 'active',
    jobCount: 1,
    lastError: { code: 'active_execution' },
    intent: { status: 'none' },
  });
  answered.resolve();
  await server.runs('slow');
  expect(await resetAll(server)).toMatchObject({ state: 'active', reactivated: true });
});

test.each(['ledger', 'all'] as const)('a reset of %s waits for a running job and completes after it', async (target) => {
  const server = await start();
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Done.', after: answered.promise }));
  const { call } = server.client;
  await call('cron.add', { name: 'slow', schedule: hourly, payload: { kind: 'agent_turn', message: 'Go' } });
  await call('cron.run', { jobName: 'slow' });
  await expect.poll(() => server.provider.requests.length).toBe(1);
  const { store, ledger } = await call('cron.status', {});
  const digests = { store: store.digest, ledger: ledger.digest };
  const expectedDigests = target === 'all' ? digests : { ledger: digests.ledger };
  await call('cron.add', { name: 'bell', schedule: hourly, payload: bell });
  const early = call('cron.reset', { target, expectedDigests, confirmed: true });
  // Something other than the end of a job has changed: rejected before the wait.
  if (target !== 'ledger') {
    await expect(early).rejects.toMatchObject({ code: 'conflict' });
    expect((await call('cron.status', {})).lastError).toMatchObject({ code: 'digest_mismatch' });
  }
  const now = await call('cron.status', {});
  const seen = { store: now.store.digest, ledger: now.ledger.digest };
  const waiting =
    target === 'ledger' ? early : call('cron.reset', { target, expectedDigests: target === 'all' ? seen : { store: seen.store }, confirmed: true });
  let result: Awaited<typeof early> | undefined;
  void waiting.then((given) => (result = given));
  await expect.poll(async () => (await call('cron.status', {})).state).toBe('maintenance');
  expect(result).toBeUndefined();
  answered.resolve();
  await expect.poll(() => (server.clock.advance(500), result)).toMatchObject({ state: 'active', reactivated: true });
  expect((await call('cron.status', {})).jobCount).toBe(target === 'ledger' ? 2 : 0);
});

test('the digests returned by a reset are those expected by the next one', async () => {
  const server = await start({ config: { scheduler: {} }, cron: { builtIn: { memoryLifecycle: { enabled: true } } } });
  await server.client.call('cron.add', { name: 'bell', schedule: hourly, payload: bell });
  const { afterDigests } = await resetAll(server);
  const { store, ledger } = await server.client.call('cron.status', {});
  expect(afterDigests).toEqual({ store: store.digest, ledger: ledger.digest });
  const again = await server.client.call('cron.reset', { target: 'store', expectedDigests: { store: afterDigests.store ?? null }, confirmed: true });
  expect(again.afterDigests).toEqual({ store: (await server.client.call('cron.status', {})).store.digest });
});
