import { sql } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { openGraphs } from '../testing/open-graphs.ts';

const Waiting = z.object({ waits: z.number() });

test('an outage longer than the timeouts of a node and its graph ends neither of them', async () => {
  let isDown = true;
  await using server = await openGraphs({
    provider: { answer: () => (isDown ? { status: 500 } : { text: 'Done.' }) },
    config: { agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 1 } } } },
  });
  const graphId = await server.execute([{ node_id: 'one', task: 'Work', timeout_ms: 20_000 }], { settings: { timeout_ms: 30_000 } });
  const runOf = async () => (await server.view(graphId)).nodes['one']?.runId;
  await expect.poll(runOf).toBeDefined();
  const isParked = async () => {
    server.clock.advance(10);
    return (
      (await sql(server.homeDir, `select id from work_item where kind = 'subagent' and state = 'accepted' and waiting_json is not null`)).length > 0
    );
  };
  // Two minutes, stepped only while the run waits: one that is being retried would time out.
  for (let n = 0; n < 24; n += 1) {
    await expect.poll(isParked, { interval: 5 }).toBe(true);
    server.clock.advance(5_000);
    expect((await server.view(graphId)).nodes['one']?.status).toBe('running');
  }
  isDown = false;
  await server.client.call('providers.retry', { provider: 'mock' });
  const view = await server.until(graphId, ({ isTerminal }) => isTerminal, 1_000);
  expect(view).toMatchObject({ status: 'completed', nodes: { one: { status: 'completed', attempt: 1 } } });
});

test('neither an outage nor a jump of the clock uses up the hours of a root run', async () => {
  let isDown = true;
  await using server = await openGraphs({
    provider: { answer: () => (isDown ? { status: 500 } : { text: 'Done.' }) },
    config: {
      agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 1 } } },
      autonomy: { guards: { budget: { hours: 1 } } },
    },
  });
  const graphId = await server.execute([{ node_id: 'one', task: 'Work', timeout_ms: 600_000 }], { settings: { timeout_ms: 600_000 } });
  const { runId } = await server.client.call('session.spawn', { task: 'Look' });
  /** How often each run has begun to wait; empty while one of them is being retried. */
  const waits = async () => {
    const parked = `kind = 'subagent' and state = 'accepted' and waiting_json is not null`;
    const rows = await sql(server.homeDir, `select waiting_json from work_item where ${parked} order by id`);
    return rows.length === 2 ? rows.map((row) => Waiting.parse(JSON.parse(String(row['waiting_json']))).waits) : [];
  };
  let before = [0, 0];
  // Six hours, stepped only while both runs wait: a run that is being retried would time out.
  for (let half = 0; half < 12; half += 1) {
    const triedAgain = async () => {
      server.clock.advance(250);
      const now = await waits();
      return now.length === 2 && now.every((count, index) => count > (before[index] ?? 0));
    };
    await expect.poll(triedAgain, { interval: 5 }).toBe(true);
    // Answered after the process has learned what is stored.
    expect((await server.view(graphId)).isTerminal).toBe(false);
    before = await waits();
    server.clock.advance(1_800_000);
    if (half === 4) server.clock.step(365 * 86_400_000);
    if (half === 6) server.clock.step(-365 * 86_400_000);
  }
  await expect.poll(async () => (server.clock.advance(250), (await waits()).length), { interval: 5 }).toBe(2);
  isDown = false;
  await server.client.call('providers.retry', { provider: 'mock' });
  const view = await server.until(graphId, ({ isTerminal }) => isTerminal, 1_000);
  expect(view).toMatchObject({ status: 'completed', nodes: { one: { status: 'completed', attempt: 1 } } });
  await expect.poll(() => server.client.call('session.run_status', { runId })).toMatchObject({ status: 'completed' });
});
