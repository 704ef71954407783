import { expect, test } from 'vitest';
import { openGraphs } from './testing/open-graphs.ts';

test('an outage that is longer than the times of a node and of its graph ends neither of them', async () => {
  let isDown = true;
  await using server = await openGraphs({
    provider: { answer: () => (isDown ? { status: 500 } : { text: 'Done.' }) },
    config: { agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 1 } } } },
  });
  const graphId = await server.execute([{ node_id: 'one', task: 'Work', timeout_ms: 20_000 }], { settings: { timeout_ms: 30_000 } });
  const runOf = async () => (await server.view(graphId)).nodes['one']?.runId;
  await expect.poll(runOf, { timeout: 5_000 }).toBeDefined();
  // Two minutes.
  for (let n = 0; n < 120; n += 1) {
    server.clock.advance(1_000);
    expect((await server.view(graphId)).nodes['one']?.status).toBe('running');
  }
  isDown = false;
  await server.client.call('providers.retry', { provider: 'mock' });
  const view = await server.until(graphId, ({ isTerminal }) => isTerminal, 1_000);
  expect(view).toMatchObject({ status: 'completed', nodes: { one: { status: 'completed', attempt: 1 } } });
});
