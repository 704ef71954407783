import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DbCall, interceptDb } from '../../../access/approvals/testing/intercept-db.ts';
import { openGraphs, scripted } from '../testing/open-graphs.ts';

// What happens to a graph while a process reads it, at its start or after a restart.

let homeDir: string;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-loading-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

/** Holds the first call of an operation, with its output or before it runs, and counts how often each has returned. */
function hold(name: string, when: 'before' | 'after') {
  const returned = new Map<string, number>();
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let isArmed = true;
  const around = async ({ operation }: DbCall, run: () => Promise<unknown>): Promise<unknown> => {
    if (operation !== name || !isArmed) {
      const found = await run();
      returned.set(operation, (returned.get(operation) ?? 0) + 1);
      return found;
    }
    isArmed = false;
    const output = when === 'after' ? await run() : undefined;
    reached.resolve();
    await released.promise;
    return when === 'after' ? output : run();
  };
  return {
    db: interceptDb(around, ['write', 'read']),
    reached: reached.promise,
    release: released.resolve,
    returned: (one: string) => returned.get(one) ?? 0,
  };
}

test('a graph that is cancelled while it is read starts no node', async () => {
  const held = hold('graph.load', 'after');
  await using server = await openGraphs({ db: held.db, homeDir });
  const graphId = await server.execute([{ node_id: 'a', task: 'Begin' }]);
  await held.reached;
  await server.client.call('graph.cancel', { graphId });
  held.release();
  expect((await server.ended(graphId)).status).toBe('cancelled');
  expect(server.provider.requests).toHaveLength(0);
});

test('a gate that is answered while its graph is read after a restart is not asked again', async () => {
  const clock = createStepClock();
  const nodes = [{ node_id: 'gate', task: 'May it be sent?', type_id: 'approval-gate' as const }];
  let graphId: string;
  {
    await using server = await openGraphs({ homeDir, clock });
    graphId = await server.execute(nodes, { announceChannelType: 'gateway', announceChannelId: 'inbox' });
    await server.until(graphId, ({ nodes: { gate } }) => gate?.waitsForAnswer === true);
    await server.stop();
  }
  const held = hold('graph.load', 'after');
  await using server = await openGraphs({ homeDir, clock, db: held.db });
  await held.reached;
  await server.client.call('graph.answer', { graphId, nodeId: 'gate', answer: 'yes' });
  held.release();
  expect((await server.ended(graphId)).status).toBe('completed');
});

test('a run that begins to wait before its graph listens again pauses the time limit of the graph', async () => {
  const clock = createStepClock();
  const config = {
    approvals: { rules: [{ tools: ['write'], action: 'ask' as const }] },
    agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' as const } } },
  };
  let graphId: string;
  {
    await using server = await openGraphs({ homeDir, clock, config, provider: { answer: () => ({ hang: true }) } });
    graphId = await server.execute([{ node_id: 'a', task: 'Begin' }], { timeout_ms: 600_000 });
    await expect.poll(() => server.provider.requests.length).toBe(1);
    await server.stop();
  }
  const model = scripted({
    Begin: (_asked, time) =>
      time === 1 ? { toolCalls: [{ id: 'w1', name: 'write', arguments: JSON.stringify({ path: 'a.txt', content: 'x' }) }] } : { text: 'Done' },
  });
  // The graph finds its run again with the key under which it started it.
  const held = hold('subagents.accept', 'before');
  await using server = await openGraphs({ homeDir, clock, config, db: held.db, provider: { answer: (request) => model.answer(request) } });
  const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
  await held.reached;
  await expect.poll(pending).toHaveLength(1);
  await expect.poll(async () => (await server.client.call('run.list', {})).runs[0]?.waiting?.kind).toBe('approval');
  const before = held.returned('subagents.waitingOf');
  held.release();
  // The graph listens again, and reads what began to wait before.
  await expect.poll(() => held.returned('subagents.waitingOf')).toBeGreaterThan(before);
  for (let n = 0; n < 20; n += 1) {
    clock.advance(60_000);
    expect((await server.view(graphId)).isTerminal).toBe(false);
  }
  await server.client.call('admin.approval.resolveAll', { approved: true });
  expect((await server.ended(graphId)).status).toBe('completed');
});
