import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, sql, type StepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../../../kernel/db/db.ts';
import { type GraphServer, openGraphs, type Nodes, scripted } from '../testing/open-graphs.ts';

/** The same home for consecutive servers. */
let homeDir: string;
let clock: StepClock;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-graph-'));
  clock = createStepClock();
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

const start = (provider: NonNullable<Parameters<typeof openGraphs>[0]>['provider'] = {}) =>
  openGraphs({
    homeDir,
    clock,
    provider,
    config: { gateway: { drainTimeoutMs: 50, tokens: [{ id: 'owner', secret: 'x'.repeat(40), scopes: ['*'] }] } },
  });

const select = (statement: string) => sql(homeDir, statement);

const toInbox = { announceChannelType: 'gateway', announceChannelId: 'inbox' } as const;
const inboxOf = async (server: GraphServer) => (await server.client.call('inbox.list', {})).messages.filter(({ source }) => source === 'graph');

const nodes: Nodes = [
  { node_id: 'a', task: 'Do one.', agent: 'default' },
  {
    node_id: 'debate',
    task: 'Do two.',
    depends_on: ['a'],
    type_id: 'debate',
    type_config: { agents: ['default', 'second'], rounds: 1, synthesizer: 'third' },
  },
  { node_id: 'end', task: 'Do three.', agent: 'default', depends_on: ['debate'] },
];

test.each([1, 2, 3, 4, 5])('a graph resumes at model call %i when the daemon stops during that call', async (at) => {
  let graphId: string;
  {
    await using server = await start();
    let calls = 0;
    server.provider.setAnswer(() => ((calls += 1) === at ? { hang: true } : { text: `SAID ${calls}` }));
    graphId = await server.execute(nodes, { label: 'long' });
    await expect.poll(() => (clock.advance(1), calls)).toBe(at);
    await server.stop();
  }
  // Any number of restarts may interrupt a graph.
  expect((await select("select attempts from work_item where kind = 'graph'")).map(({ attempts }) => attempts)).toEqual([1]);
  let calls = at - 1;
  // The graph resumes as soon as the server starts.
  await using server = await start({ answer: () => ({ text: `SAID ${(calls += 1)}` }) });
  const started = server.heard('graph:started');
  const view = await server.ended(graphId);
  expect(view).toMatchObject({ status: 'completed', nodes: { a: { output: 'SAID 1' }, debate: { output: 'SAID 4' }, end: { output: 'SAID 5' } } });
  // Finished work is not repeated.
  expect(calls).toBe(5);
  expect(started.every(({ resumed }) => resumed)).toBe(true);
  expect(await inboxOf(server)).toHaveLength(1);
  const { runs } = await server.client.call('subagent.list', {});
  expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 'completed'));
});

test('a summary that a stop of the daemon interrupts is made again, and both are in the books and on the root run', async () => {
  const answer = { text: 'word '.repeat(200) };
  let graphId: string;
  {
    await using server = await start();
    let calls = 0;
    server.provider.setAnswer(() => ((calls += 1) === 2 ? { hang: true } : answer));
    graphId = await server.execute([
      { node_id: 'a', task: 'Do one.', agent: 'default' },
      { node_id: 'b', task: 'Do two.', agent: 'default', depends_on: ['a'], context_mode: 'summary' },
    ]);
    await expect.poll(() => (clock.advance(1), calls)).toBe(2);
    await server.stop();
  }
  await using server = await start({ answer: () => answer });
  const { rootRunId } = await server.ended(graphId);
  const { rows, totals } = await server.client.call('usage.report', { groupBy: ['operation'] });
  expect(rows.map(({ keys, calls }) => [keys[0], calls]).toSorted()).toEqual([
    ['condensation', 2],
    ['subagent', 2],
  ]);
  const { runs } = await server.client.call('run.list', {});
  expect(runs.map((run) => [run.rootRunId, run.cost])).toEqual([[rootRunId, totals.costUsd]]);
});

/** What a process notes before it books the answer of a summary. */
function noted(rootRunId: string, graphId: string, answer: string, atMs: number): string {
  const of = {
    id: 'wk_killed',
    agentId: 'default',
    principalId: 'tk_owner',
    conversationRef: null,
    rootRunId,
    node: { graphId, nodeId: 'b' },
    summarizes: { graphId, nodeId: 'a' },
  };
  const record = {
    provider: 'mock',
    modelId: 'mock-fast',
    operation: 'condensation',
    usage: { input: 777, output: 33, cacheRead: 0, cacheWrite: 0, estimated: false },
    cost: { input: 777_000, output: 66_000, cacheRead: 0, cacheWrite: 0 },
    savedNano: 0,
    latencyMs: 5,
    startedAtMs: atMs,
    outcome: 'ok',
  };
  return [
    { is: 'made', of, record },
    { is: 'kept', of, answer },
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

test.each(['booked', 'noted'] as const)('a summary whose answer a kill left %s is not paid for again, and costs its node', async (left) => {
  const long = { text: 'word '.repeat(200) };
  let graphId: string;
  {
    await using server = await start();
    let calls = 0;
    // The summary gets no answer, or the node that it was made for.
    server.provider.setAnswer(() => ((calls += 1) === (left === 'noted' ? 2 : 3) ? { hang: true } : long));
    graphId = await server.execute([
      { node_id: 'a', task: 'Do one.', agent: 'default' },
      { node_id: 'b', task: 'Do two.', agent: 'default', depends_on: ['a'], context_mode: 'summary' },
    ]);
    await expect.poll(() => (clock.advance(1), calls)).toBe(left === 'noted' ? 2 : 3);
    await server.stop();
  }
  const [root] = await select('select id from root_run');
  if (left === 'noted') {
    await select("delete from model_call where operation = 'condensation'");
    await select(
      `update root_run set ended_tokens = r.tokens, ended_nano = r.nano, spent_tokens = 0, spent_nano = 0 from (select sum(input_tokens + output_tokens) as tokens, sum(cost_nano) as nano from model_call) r`,
    );
    await select("update graph_node set tokens = 0, cost_nano = 0 where node_id = 'b'");
    await writeFile(join(homeDir, 'data', 'model-calls.journal'), noted(String(root?.['id']), graphId, 'Noted in short.', clock.now()));
  }
  const asked: string[] = [];
  await using server = await start({ answer: ({ body }) => (asked.push(JSON.stringify(body)), { text: 'Done.' }) });
  await server.ended(graphId);
  expect(asked.filter((sent) => sent.includes('Summarize the report'))).toEqual([]);
  expect(asked.some((sent) => sent.includes(left === 'noted' ? 'Summary of the result of a:\\n' : 'word word')) && asked.length).toBe(1);
  const { rows, totals } = await server.client.call('usage.report', { groupBy: ['operation'] });
  expect(rows.find(({ keys }) => keys[0] === 'condensation')).toMatchObject(left === 'noted' ? { calls: 1, costUsd: 0.000_843 } : { calls: 1 });
  const { runs } = await server.client.call('run.list', {});
  expect(runs.map(({ cost }) => cost)).toEqual([totals.costUsd]);
  const [nodes] = await select('select sum(cost_nano) as nano from graph_node');
  expect(Number(nodes?.['nano']) / 1e9).toBeCloseTo(totals.costUsd ?? 0, 12);
});

test('a summary that could not be booked is booked by the next start, and costs its node once', async () => {
  const long = { text: 'word '.repeat(200) };
  const failing = (db: Db): Db => ({
    ...db,
    read: (operation, input) => db.read(operation, input),
    write: (operation, input) => (operation.name === 'work.book' ? Promise.reject(new Error('The disk is full')) : db.write(operation, input)),
  });
  const config = { gateway: { tokens: [{ id: 'owner', secret: 'x'.repeat(40), scopes: ['*' as const] }] } };
  let graphId: string;
  {
    await using server = await openGraphs({ homeDir, clock, config, db: failing, provider: { answer: () => long } });
    graphId = await server.execute([
      { node_id: 'a', task: 'Do one.', agent: 'default' },
      { node_id: 'b', task: 'Do two.', agent: 'default', depends_on: ['a'], context_mode: 'summary' },
    ]);
    await server.ended(graphId);
    await server.stop();
  }
  await using server = await start({ answer: () => long });
  const { rows, totals } = await server.client.call('usage.report', { groupBy: ['operation'] });
  expect(rows.map(({ keys, calls }) => [keys[0], calls]).toSorted()).toEqual([
    ['condensation', 1],
    ['subagent', 2],
  ]);
  const { runs } = await server.client.call('run.list', {});
  expect(runs.map(({ cost }) => cost)).toEqual([totals.costUsd]);
  const [nodes] = await select(`select sum(cost_nano) as nano from graph_node where graph_id = '${graphId}'`);
  expect(Number(nodes?.['nano'])).toBe(Math.round((totals.costUsd ?? 0) * 1e9));
});

test('a step keeps the results of its ended runs while another one waits for hours, over a restart', async () => {
  const config = {
    approvals: { rules: [{ tools: ['write'], action: 'ask' as const }] },
  };
  const write = { toolCalls: [{ id: 'w1', name: 'write', arguments: JSON.stringify({ path: 'a.txt', content: 'x' }) }] };
  const startVote = async () => openGraphs({ homeDir, clock, config });
  const ended = async ({ client }: GraphServer) => (await client.call('subagent.list', { recentMinutes: 10_080 })).runs.map(({ status }) => status);
  const nodes: Nodes = [{ node_id: 'vote', task: 'Is it well?', type_id: 'vote', type_config: { voters: ['default', 'second'] } }];
  let graphId: string;
  {
    await using server = await startVote();
    server.provider.queue(write);
    graphId = await server.execute(nodes);
    await expect.poll(async () => (await server.client.call('admin.approval.pending', {})).requests).toHaveLength(1);
    await expect.poll(() => ended(server)).toContain('completed');
    // The limits of graph and node pause once the run has begun to wait.
    await expect.poll(() => select("select 1 from work_item where kind = 'subagent' and waiting_json is not null")).toHaveLength(1);
    // The graph learns of it a few calls of the database later.
    for (let n = 0; n < 50; n += 1) await ended(server);
    for (let n = 0; n < 30; n += 1) {
      clock.advance(5 * 60_000);
      await ended(server);
    }
    await server.stop();
  }
  await using server = await startVote();
  await server.client.call('admin.approval.resolveAll', { approved: true });
  expect(await server.ended(graphId)).toMatchObject({ status: 'completed', nodes: { vote: { status: 'completed' } } });
});

test('a gate that asked before a restart is answered after it, and does not ask twice', async () => {
  let graphId: string;
  {
    await using server = await start();
    server.provider.setAnswer(scripted({}).answer);
    graphId = await server.execute([{ node_id: 'gate', task: 'Sure?', type_id: 'approval-gate' }], toInbox);
    await server.until(graphId, (view) => view.nodes['gate']?.waitsForAnswer === true);
    await server.stop();
  }
  {
    await using server = await start();
    await server.until(graphId, (view) => view.nodes['gate']?.progress === 'is waiting for an answer');
    expect(await inboxOf(server)).toHaveLength(1);
    clock.advance(30 * 60_000);
    await expect.poll(async () => (await inboxOf(server)).length).toBe(2);
  }
  await using server = await start();
  // Independent of whether the graph has been resumed: the row counts.
  await server.client.call('graph.answer', { graphId, nodeId: 'gate', answer: 'approve' });
  expect(await server.ended(graphId)).toMatchObject({ status: 'completed', nodes: { gate: { output: 'Approved: approve' } } });
  expect(await inboxOf(server)).toHaveLength(3);
});

test('a gate that expired while no daemon ran fails at the next start', async () => {
  let graphId: string;
  {
    await using server = await start();
    graphId = await server.execute([{ node_id: 'gate', task: 'Sure?', type_id: 'approval-gate' }], toInbox);
    await server.until(graphId, (view) => view.nodes['gate']?.waitsForAnswer === true);
  }
  clock.advance(61 * 60_000);
  await using server = await start();
  expect(await server.ended(graphId)).toMatchObject({ status: 'failed', nodes: { gate: { error: 'timeout: nobody answered in time' } } });
});

test('a graph that was cancelled before a restart starts nothing afterwards', async () => {
  let graphId: string;
  {
    await using server = await start();
    server.provider.setAnswer(scripted({ 'Do one': { hang: true } }).answer);
    graphId = await server.execute(nodes);
    await expect.poll(() => (clock.advance(1), server.provider.served())).toBe(1);
    await server.client.call('graph.cancel', { graphId });
    await server.stop();
  }
  await using server = await start({ answer: () => ({ text: 'ONE' }) });
  expect(await server.ended(graphId)).toMatchObject({
    status: 'cancelled',
    nodes: { a: { status: 'completed', output: 'ONE' }, debate: { status: 'skipped' }, end: { status: 'skipped' } },
  });
  expect(server.provider.served()).toBe(1);
});
