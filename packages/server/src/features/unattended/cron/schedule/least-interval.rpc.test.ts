import { createStepClock, sql } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { openCron } from '../testing/open-cron.ts';

const bell = { kind: 'delivery', text: 'Ding.' } as const;
const every = (everyMs: number) => ({ kind: 'every', everyMs }) as const;
const seconds = (step: number) => ({ kind: 'cron', expr: `*/${step} * * * * *` }) as const;

test('cron.add and cron.update reject a schedule below the minimum interval of the token', async () => {
  await using server = await openCron();
  const plain = await server.as(['rpc']);
  const add = (client: typeof server.client, name: string, schedule: ReturnType<typeof every> | ReturnType<typeof seconds>) =>
    client.call('cron.add', { name, schedule, payload: bell });
  for (const schedule of [every(1), every(9_999), seconds(5)])
    await expect(add(plain, 'often', schedule)).rejects.toMatchObject({ code: 'denied', message: expect.stringContaining('every 10000 ms') });
  for (const schedule of [every(1), every(999)])
    await expect(add(server.client, 'often', schedule)).rejects.toMatchObject({ code: 'denied', message: expect.stringContaining('every 1000 ms') });
  await add(plain, 'every', every(10_000));
  await add(plain, 'expression', seconds(10));
  await add(server.client, 'second', seconds(1));
  await expect(plain.call('cron.update', { jobName: 'every', schedule: every(500) })).rejects.toMatchObject({ code: 'denied' });
  await plain.call('cron.update', { jobName: 'every', name: 'renamed' });
});

test('a stored job with a shorter interval runs at the limit and reports it', async () => {
  await using server = await openCron({ clock: createStepClock(Date.UTC(2026, 8, 21, 12)) });
  const plain = await server.as(['rpc']);
  const { jobId } = await plain.call('cron.add', { name: 'bell', schedule: every(10_000), payload: bell });
  expect((await plain.call('cron.list', {})).jobs[0]).not.toHaveProperty('leastIntervalMs');
  await sql(server.homeDir, `UPDATE cron_job SET schedule_json = replace(schedule_json, '"everyMs":10000', '"everyMs":10') WHERE id = ?`, jobId);
  expect((await plain.call('cron.list', {})).jobs[0]).toMatchObject({ schedule: { everyMs: 10 }, leastIntervalMs: 10_000 });
  await server.pass(60_000, 1_000);
  const runs = (await server.runs(jobId)).filter(({ status }) => status === 'completed');
  const starts = runs.map(({ startedAtMs }) => startedAtMs).toSorted((a, b) => a - b);
  expect(starts.length).toBeGreaterThan(1);
  expect(starts.every((atMs, index) => index === 0 || atMs - (starts[index - 1] ?? 0) >= 10_000)).toBe(true);
});

test('cron.run and cron.runs accept the id returned by cron.add', async () => {
  await using server = await openCron();
  const { jobId } = await server.client.call('cron.add', { name: 'bell', schedule: every(60_000), payload: bell });
  expect(await server.client.call('cron.run', { jobId })).toMatchObject({ triggered: true, jobName: 'bell' });
  await server.runs(jobId);
  expect((await server.client.call('cron.runs', { jobId })).runs).toMatchObject([{ trigger: 'manual', status: 'completed' }]);
  await expect(server.client.call('cron.run', { mode: 'due', jobId })).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(server.client.call('cron.run', {})).rejects.toMatchObject({ code: 'invalid_params' });
});
