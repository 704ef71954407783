import type { ParamsInput } from '@gatehouse/contract';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: {
      scheduler: { cron: { builtIn: { memoryLifecycle: { enabled: false } } } },
      webhooks: {
        enabled: true,
        mappings: [{ id: 'shop', name: 'Shop', match: { path: 'shop' }, messageTemplate: 'Order', allowUnauthenticated: true }],
      },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

type By = Pick<TestServer['client'], 'call'>;
const list = (params: ParamsInput<'run.executions'> = {}, by: By = server.client) => by.call('run.executions', params);

test('runs, graphs, jobs and deliveries are one list with filters and pages, each owner its own', async () => {
  const ada = await server.as(['rpc']);
  await ada.call('cron.add', { name: 'bell', schedule: { kind: 'every', everyMs: 86_400_000 }, payload: { kind: 'delivery', text: 'Ding' } });
  await ada.call('cron.run', { jobName: 'bell' });
  await ada.call('cron.run', { jobName: 'bell' });
  await ada.call('session.spawn', { task: 'Look into tides' });
  await ada.call('graph.execute', { label: 'Report', nodes: [{ node_id: 'look', task: 'Look' }] });
  await server.client.call('webhooks.test', { mapping: 'shop', payload: {}, run: true });
  await expect.poll(async () => (await list({ state: 'active' })).executions).toEqual([]);

  const all = await list();
  expect(all.hasMore).toBe(false);
  expect(all.executions.map(({ kind, name, state }) => [kind, name ?? '', state]).toSorted()).toEqual([
    ['delivery', 'shop', 'completed'],
    ['graph', 'Report', 'completed'],
    ['job', 'bell', 'completed'],
    ['job', 'bell', 'completed'],
    ['run', 'Look into tides', 'completed'],
  ]);
  const times = all.executions.map(({ startedAt }) => startedAt);
  expect(times).toEqual(times.toSorted((one, other) => other - one));

  const paged = [];
  for (let before: string | undefined, hasMore = true; hasMore;) {
    const page = await list({ limit: 2, before });
    paged.push(...page.executions);
    ({ hasMore } = page);
    before = page.executions.at(-1)?.cursor;
  }
  expect(paged).toEqual(all.executions);

  expect((await list({ kind: 'job' })).executions).toMatchObject([
    { kind: 'job', startedBy: 'manual', jobId: expect.stringMatching(/^cj_/) },
    { kind: 'job', startedBy: 'manual' },
  ]);
  expect((await list({ kind: 'graph', state: 'skipped' })).executions).toEqual([]);
  expect((await list({ agentId: 'nobody' })).executions).toEqual([]);
  const own = (await list({}, ada)).executions;
  expect(own.map(({ kind }) => kind).toSorted()).toEqual(['graph', 'job', 'job', 'run']);
  expect(own.find(({ kind }) => kind === 'run')?.name).toBeUndefined();
  expect((await list({ kind: 'delivery' }, ada)).executions).toEqual([]);
  expect((await list({}, await server.as(['rpc']))).executions).toEqual([]);
  expect((await list({}, await server.as(['rpc', 'admin'], { agents: ['elsewhere'] }))).executions).toEqual([]);
  await expect(list({ before: 'x' })).rejects.toMatchObject({ code: 'invalid_params' });
});
