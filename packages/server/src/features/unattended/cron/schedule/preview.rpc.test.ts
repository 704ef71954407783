import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const fromMs = Date.parse('2026-03-28T01:00:00Z');
const schedule = { kind: 'cron', expr: '30 2 * * *', tz: 'europe/berlin' } as const;

test('both transports return the next times of a schedule without creating a job', async () => {
  using socket = server.socket();
  for (const client of [server.client, socket])
    expect(await client.call('cron.preview', { schedule, count: 2, fromMs })).toEqual({
      schedule: { ...schedule, tz: 'Europe/Berlin' },
      timesMs: [Date.parse('2026-03-28T01:30:00Z'), Date.parse('2026-03-29T01:00:00Z')],
      runsPerHour: 2 / 24,
      costPerHourUsd: null,
    });
  const { jobs } = await server.client.call('cron.list', {});
  expect(jobs.filter(({ source }) => source === 'authored')).toEqual([]);
});

test('ten times from now by default, and fewer when there are no more', async () => {
  const asked = Date.now();
  const { timesMs } = await server.client.call('cron.preview', { schedule: { kind: 'every', everyMs: 60_000 } });
  expect(timesMs).toHaveLength(10);
  expect(timesMs[0]).toBeGreaterThan(asked);
  expect(timesMs.every((time, index) => index === 0 || time - (timesMs[index - 1] ?? 0) === 60_000)).toBe(true);
  expect((await server.client.call('cron.preview', { schedule: { kind: 'in', seconds: 60 } })).timesMs).toHaveLength(1);
});

test('an invalid schedule is rejected with its field and code, and so are exceeded bounds', async () => {
  const gap = { kind: 'at', at: '2026-03-29T02:30', tz: 'Europe/Berlin' } as const;
  await expect(server.client.call('cron.preview', { schedule: gap, fromMs })).rejects.toMatchObject({
    code: 'invalid_params',
    issues: [{ path: 'schedule.at', message: expect.stringContaining('nonexistent_wall_time') }],
  });
  for (const params of [{ schedule, count: 51 }, { schedule, count: 0 }, { schedule, fromMs: -1 }, { schedule: { kind: 'cron' } }, {}])
    await expect(server.client.call('cron.preview', params as never)).rejects.toMatchObject({ code: 'invalid_params' });
});

test('a token without the scope is rejected', async () => {
  const reader = await server.as(['api']);
  await expect(reader.call('cron.preview', { schedule })).rejects.toMatchObject({ code: 'insufficient_scope' });
  expect((await (await server.as(['rpc'])).call('cron.preview', { schedule, count: 1 })).timesMs).toHaveLength(1);
});

test("the hourly cost of a schedule is estimated from the agent's last turns", async () => {
  await using priced = await startTestServer();
  const every = { schedule: { kind: 'every', everyMs: 600_000 }, agentId: 'default' } as const;
  expect(await priced.client.call('cron.preview', every)).toMatchObject({ runsPerHour: 6, costPerHourUsd: null });
  await priced.client.call('agent.execute', { message: 'Hello' });
  const { totalCost } = (await priced.client.call('session.status', {})).tokensUsed;
  const { costPerHourUsd } = await priced.client.call('cron.preview', every);
  expect(costPerHourUsd).toBeGreaterThan(0);
  expect(costPerHourUsd).toBeCloseTo(6 * totalCost, 9);
  await expect(priced.client.call('cron.preview', { ...every, agentId: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
});
