import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CronScheduleRequest } from '@gatehouse/contract';
import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { migrations, operations } from '../transactions/registry.ts';
import { advanceReset, prepareReset, readStatus, resetPhases } from '../features/unattended/cron/jobs/reset-store.ts';
import { type CronServer, openCron, targetOf } from '../features/unattended/cron/testing/open-cron.ts';

const open: AsyncDisposable[] = [];
const homes: string[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
  for (const home of homes.splice(0)) await rm(home, { recursive: true, force: true });
});

const hourMs = 3_600_000;
const startMs = Date.UTC(2026, 8, 21, 12);
const hourly = { kind: 'every', everyMs: hourMs, anchorMs: startMs } as const;

async function newHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'gatehouse-cron-'));
  homes.push(home);
  return home;
}

async function start(homeDir: string, clock: StepClock, options: Parameters<typeof openCron>[0] = {}): Promise<CronServer> {
  const server = await openCron({ ...options, homeDir, clock });
  open.push(server);
  return server;
}

async function stop(server: CronServer): Promise<void> {
  open.splice(open.indexOf(server), 1);
  await server[Symbol.asyncDispose]();
}

/** Delivers a text: an occurrence without a model. */
function addBell(server: CronServer, name: string, schedule: CronScheduleRequest = hourly) {
  return server.client.call('cron.add', { name, schedule, payload: { kind: 'delivery', text: name }, deliveryTarget: targetOf('token:root') });
}

test('E15: of the times missed while the daemon is down the last is caught up with, and each other one has a row', async () => {
  const home = await newHome();
  const clock = createStepClock(startMs);
  const first = await start(home, clock);
  await addBell(first, 'bell');
  await stop(first);
  clock.advance(3 * hourMs + 600_000);
  const second = await start(home, clock);
  const runs = await second.runs('bell', 3);
  expect(runs.map(({ scheduledForMs, trigger, status, errorKind }) => [(scheduledForMs - startMs) / hourMs, trigger, status, errorKind])).toEqual([
    [3, 'catchup', 'completed', undefined],
    [2, 'catchup', 'skipped', 'missed'],
    [1, 'catchup', 'skipped', 'missed'],
  ]);
  expect(runs[1]?.reason).toMatch(/Missed/);
  expect((await second.client.call('inbox.list', {})).messages).toHaveLength(1);
});

test('E15: jobs due while the daemon was down are catchup, however little late, one-shot or recurring; later additions are not', async () => {
  const home = await newHome();
  const clock = createStepClock(startMs);
  const first = await start(home, clock);
  await addBell(first, 'once', { kind: 'in', seconds: 20 });
  await addBell(first, 'bell', { kind: 'every', everyMs: hourMs, anchorMs: startMs + 20_000 });
  await addBell(first, 'later', { kind: 'in', seconds: 40 });
  await stop(first);
  clock.advance(25_000);
  const second = await start(home, clock);
  for (const name of ['once', 'bell']) expect(await second.runs(name)).toMatchObject([{ trigger: 'catchup', status: 'completed' }]);
  await second.pass(16_000, 4_000);
  expect(await second.runs('later')).toMatchObject([{ trigger: 'scheduled', status: 'completed' }]);
});

test('E15: a job that comes every second is caught up with in one run after a week, with a bounded number of rows', async () => {
  const home = await newHome();
  const clock = createStepClock(startMs);
  const first = await start(home, clock);
  await addBell(first, 'often', { kind: 'every', everyMs: 1000, anchorMs: startMs });
  await stop(first);
  clock.advance(7 * 24 * hourMs + 500);
  const second = await start(home, clock);
  // The clock is held until all of them have their rows: a time that passes meanwhile would be the last one missed.
  await second.runs('often', 1001);
  await second.pass(2_000, 1_000);
  const runs = await second.runs('often', 1001);
  const weekMs = 7 * 24 * hourMs;
  const skipped = runs.filter(({ status, scheduledForMs }) => status === 'skipped' && scheduledForMs < startMs + weekMs);
  expect(skipped).toHaveLength(1000);
  expect(skipped.map(({ reason }) => reason).filter((reason) => reason?.includes('and all after it up to'))).toHaveLength(1);
  const caught = runs.filter(({ trigger, status }) => trigger === 'catchup' && status === 'completed');
  expect(caught.at(-1)?.scheduledForMs).toBe(startMs + weekMs);
});

test('E16: setting the clock back claims nothing twice, setting it forward skips to the last time', async () => {
  const home = await newHome();
  const clock = createStepClock(startMs);
  const first = await start(home, clock);
  await addBell(first, 'bell');
  await first.pass(2 * hourMs, 600_000);
  await first.runs('bell', 2);
  await stop(first);

  const back = createStepClock(startMs + 600_000);
  const second = await start(home, back);
  await second.pass(2 * hourMs - 900_000, 300_000);
  expect(await second.ended('bell')).toHaveLength(2);
  await second.pass(2 * hourMs, 300_000);
  expect((await second.runs('bell', 3)).map(({ scheduledForMs }) => (scheduledForMs - startMs) / hourMs)).toEqual([3, 2, 1]);
  await stop(second);

  const forward = createStepClock(startMs + 72 * hourMs + 60_000);
  const third = await start(home, forward);
  const runs = await third.runs('bell', 72);
  expect(new Set(runs.map(({ scheduledForMs }) => scheduledForMs)).size).toBe(runs.length);
  expect(runs.filter(({ status }) => status === 'completed').map(({ scheduledForMs }) => (scheduledForMs - startMs) / hourMs)).toEqual([72, 3, 2, 1]);
});

test('E16: a time in a gap runs at its end, one in a fold once', async () => {
  for (const [day, expr, times] of [
    ['2027-03-28', '30 2 28 3 *', ['2027-03-28T01:00:00.000Z']],
    ['2026-10-25', '30 2 25 10 *', ['2026-10-25T00:30:00.000Z']],
  ] as const) {
    const clock = createStepClock(Date.parse(`${day}T00:00:00Z`) - hourMs);
    const server = await start(await newHome(), clock);
    await addBell(server, 'zone', { kind: 'cron', expr, tz: 'Europe/Berlin' });
    await server.pass(5 * hourMs, 300_000);
    expect((await server.runs('zone')).map(({ scheduledForMs }) => new Date(scheduledForMs).toISOString())).toEqual(times);
    for (const [fold, at] of [
      ['earlier', '00:30'],
      ['later', '01:30'],
    ] as const)
      if (day === '2026-10-25') {
        const next = await server.client.call('cron.preview', {
          schedule: { kind: 'at', at: '2027-10-31T02:30', tz: 'Europe/Berlin', fold },
          count: 1,
        });
        expect(new Date(next.timesMs[0] ?? 0).toISOString()).toBe(`2027-10-31T${at}:00.000Z`);
      }
    await stop(server);
  }
}, 20_000);

test('overdue jobs at a start are started one by one, five seconds apart, and none is skipped', async () => {
  const home = await newHome();
  const clock = createStepClock(startMs);
  const first = await start(home, clock);
  for (let n = 0; n < 12; n += 1) await addBell(first, `bell ${n}`);
  await stop(first);
  clock.advance(hourMs + 300_000);
  const second = await start(home, clock);
  const started = second.heard('scheduler:cron_execution_started');
  await second.pass(90_000, 500);
  // On a busy machine a start may come after its step of the clock.
  await expect
    .poll(async () => {
      if (started.length < 11) await second.pass(5_000, 500);
      return started.length;
    })
    .toBeGreaterThanOrEqual(11);
  const times = started.map(({ startedAtMs }) => startedAtMs);
  for (const [index, atMs] of times.entries()) if (index > 0) expect(atMs - (times[index - 1] ?? 0)).toBeGreaterThanOrEqual(5_000);
  for (let n = 0; n < 12; n += 1) expect((await second.runs(`bell ${n}`)).map(({ status }) => status)).toEqual(['completed']);
}, 20_000);

test('all overdue jobs run at once on request', async () => {
  const home = await newHome();
  const clock = createStepClock(startMs);
  const first = await start(home, clock);
  for (let n = 0; n < 4; n += 1) await addBell(first, `bell ${n}`);
  await first.client.call('cron.update', { jobName: 'bell 3', paused: true });
  await stop(first);
  clock.advance(2 * hourMs);
  const second = await start(home, clock, { cron: { enabled: false } });
  expect(await second.client.call('cron.status', {})).toMatchObject({ state: 'disabled', configuredEnabled: false, running: false });
  const due = await second.client.call('cron.run', { mode: 'due' });
  expect(due).toMatchObject({ triggered: true, mode: 'due', resolvedAgentId: 'default', executionIds: [1, 2, 3].map(() => expect.any(String)) });
  expect(await second.client.call('cron.run', { mode: 'due' })).toMatchObject({ triggered: false, executionIds: [] });
  expect(await second.runs('bell 0', 2)).toHaveLength(2);
  expect(await second.ended('bell 3')).toEqual([]);
});

test('a run interrupted by a crash is resumed by the next daemon', async () => {
  const home = await newHome();
  const clock = createStepClock(startMs);
  const first = await start(home, clock);
  first.provider.setAnswer(() => ({ hang: true }));
  await first.client.call('cron.add', { name: 'long', schedule: hourly, payload: { kind: 'agent_turn', message: 'Go' } });
  const { executionId } = Object.assign({ executionId: '' }, await first.client.call('cron.run', { jobName: 'long' }));
  await expect.poll(() => first.provider.requests.length).toBe(1);
  await stop(first);
  const second = await start(home, clock);
  expect(await second.runs('long')).toMatchObject([{ executionId, status: 'completed', trigger: 'manual' }]);
  expect((await second.client.call('cron.status', {})).ownershipReconciled).toBe(true);
}, 20_000);

test('E18: a reset with a stale digest changes nothing, one with the right digests clears what it names', async () => {
  const server = await start(await newHome(), createStepClock(startMs));
  await addBell(server, 'bell');
  await server.client.call('cron.run', { jobName: 'bell' });
  await server.runs('bell');
  const seen = await server.client.call('cron.status', {});
  const expected = { store: seen.store.digest, ledger: seen.ledger.digest };
  const reset = (target: 'store' | 'ledger' | 'all', expectedDigests: object) =>
    server.client.call('cron.reset', { target, expectedDigests, confirmed: true });
  await expect(reset('all', { ...expected, ledger: 'a'.repeat(64) })).rejects.toMatchObject({ code: 'conflict' });
  const after = await server.client.call('cron.status', {});
  expect(after).toMatchObject({ jobCount: 1, state: 'active', intent: { status: 'none' }, lastError: { code: 'digest_mismatch' } });
  expect(after.store).toEqual(seen.store);

  const emptied = await reset('ledger', { ledger: expected.ledger });
  expect(emptied).toMatchObject({ target: 'ledger', beforeDigests: { ledger: expected.ledger }, state: 'active', reactivated: true });
  expect(emptied.afterDigests).not.toEqual(emptied.beforeDigests);
  expect((await server.client.call('cron.runs', { jobName: 'bell' })).runs).toEqual([]);
  const { store } = await server.client.call('cron.status', {});
  const gone = await reset('store', { store: store.digest });
  expect(gone.afterDigests).toEqual({ store: (await server.client.call('cron.status', {})).store.digest });
  expect((await server.client.call('cron.list', {})).total).toBe(0);
  await expect(reset('store', { store: store.digest })).rejects.toMatchObject({ code: 'conflict' });
  await addBell(server, 'bell');
});

test.each(resetPhases.map((phase, index) => [phase, index] as const))(
  'E18: a reset that crashes in phase %s is resumed to the same end',
  async (phase, steps) => {
    const home = await newHome();
    const clock = createStepClock(startMs);
    const first = await start(home, clock);
    await addBell(first, 'bell');
    await first.client.call('cron.run', { jobName: 'bell' });
    await first.runs('bell');
    await stop(first);

    // State written by a daemon that is killed after this phase.
    const db = await openInlineDb({ dataDir: join(home, 'data'), migrations, operations });
    const before = await db.read(readStatus, { agentId: 'default', principalId: null, bootId: '' });
    await db.write(prepareReset, {
      agentId: 'default',
      operationId: 'co_test',
      target: 'all',
      expected: { store: before.store.digest, ledger: before.ledger.digest },
      bootId: 'boot',
      atMs: clock.now(),
      audit: {
        id: 'au_test',
        atMs: clock.now(),
        principalId: 'token:root',
        action: 'cron.reset',
        classification: 'destructive',
        outcome: 'success',
        traceId: '',
      },
    });
    for (let step = 0; step < steps; step += 1) await db.write(advanceReset, { agentId: 'default', atMs: clock.now() });
    expect(await db.read(readStatus, { agentId: 'default', principalId: null, bootId: '' })).toMatchObject({ intent: { row: { phase } } });
    await db[Symbol.asyncDispose]();

    const second = await start(home, clock);
    await expect.poll(async () => (await second.client.call('cron.status', {})).state).toBe('active');
    expect(await second.client.call('cron.status', {})).toMatchObject({
      jobCount: 0,
      activeClaimCount: 0,
      intent: { status: 'none' },
      ledger: { exists: true, bytes: 0 },
    });
    await stop(second);
    const archived = await openInlineDb({ dataDir: join(home, 'data'), migrations, operations: [...operations, archives] });
    expect(await archived.read(archives, {})).toEqual([
      { part: 'ledger', digest: before.ledger.digest, bytes: before.ledger.bytes },
      { part: 'store', digest: before.store.digest, bytes: before.store.bytes },
    ]);
    await archived[Symbol.asyncDispose]();
  },
);

test('an invalid intent stops only the schedule of its agent, and a reset restarts it', async () => {
  const home = await newHome();
  const clock = createStepClock(startMs);
  const options = { config: { agents: { other: { model: 'mock/mock-fast' } } } };
  const first = await start(home, clock, options);
  await addBell(first, 'bell');
  await stop(first);
  const db = await openInlineDb({ dataDir: join(home, 'data'), migrations, operations: [...operations, spoil] });
  await db.write(spoil, {});
  await db[Symbol.asyncDispose]();
  const second = await start(home, clock, options);
  const status = await second.client.call('cron.status', {});
  expect(status).toMatchObject({
    state: 'failed',
    running: false,
    strictAuthoritiesValid: false,
    intent: { status: 'invalid' },
    lastError: { code: 'intent_invalid' },
  });
  expect((await second.client.call('cron.status', { agentId: 'other' })).state).toBe('active');
  await expect(second.client.call('cron.run', { jobName: 'bell' })).rejects.toMatchObject({ code: 'precondition_failed' });
  await second.pass(2 * hourMs, 600_000);
  expect((await second.client.call('cron.list', {})).total).toBe(1);
  expect(await second.ended('bell')).toEqual([]);
  const { store, ledger } = status;
  expect(
    await second.client.call('cron.reset', { target: 'all', expectedDigests: { store: store.digest, ledger: ledger.digest }, confirmed: true }),
  ).toMatchObject({
    state: 'active',
    reactivated: false,
  });
  expect((await second.client.call('cron.status', {})).lastError).toBeUndefined();
});

const archives = {
  name: 'test.archives',
  run: async (tx: Parameters<(typeof readStatus)['run']>[0]) =>
    tx.build<object>((db) => db.selectFrom('cronArchive').select(['part', 'digest', 'bytes']).where('operationId', '=', 'co_test').orderBy('part')),
};
const spoil = {
  name: 'test.spoil',
  run: async (tx: Parameters<(typeof readStatus)['run']>[0]) => {
    await tx.build((db) =>
      db
        .insertInto('cronIntent')
        .values({ agentId: 'default', operationId: 'co_bad', target: 'all', phase: 'half', beforeJson: '{}', afterJson: null, createdAtMs: 0 }),
    );
  },
};
