import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  copyHome,
  createStepClock,
  type FakeAnswer,
  type FakeRequest,
  sql,
  startTestServer,
  telemetrySql,
  type TestServer,
} from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

let homeDir: string;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-killed-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

const nano = (usd: number | null) => Math.round((usd ?? 0) * 1e9);
const long = 'word '.repeat(200);
let served = 0;

/** Different figures for each call, so that no sum is right by chance. */
function answerTo({ body }: FakeRequest): FakeAnswer {
  const sent = JSON.stringify(body);
  served += 1;
  const usage = { input: 1000 + served, output: 10 + 3 * served };
  const hasActed = sent.includes('"role":"tool"');
  const call = (name: string, args: object): FakeAnswer => ({ toolCalls: [{ id: `c${served}`, name, arguments: JSON.stringify(args) }], usage });
  if (sent.includes('Delegate') && !hasActed) return call('sessions_spawn', { task: 'Find it.' });
  if (sent.includes('Find it.') && !sent.includes('Delegate') && !hasActed) return call('ls', {});
  return { text: sent.includes('Do one.') ? long : 'Done.', usage };
}

/** The second calls of a request and of its sub-agent, and the summary of a node, never get an answer. */
function hangAt(request: FakeRequest): boolean {
  const sent = JSON.stringify(request.body);
  return sent.includes('Summarize the report') || (sent.includes('"role":"tool"') && /Delegate|Find it\./.test(sent));
}

async function sumsOf({ client }: TestServer) {
  const { totals } = await client.call('usage.report', { groupBy: ['agent'] });
  const { runs } = await client.call('run.list', {});
  return {
    booked: nano(totals.costUsd),
    roots: runs.reduce((sum, { cost }) => sum + nano(cost), 0),
    states: runs.map(({ state }) => state).toSorted(),
  };
}

test.each([
  { what: 'without a cap in money', budgets: {}, hasJournal: true },
  { what: 'under a cap in money', budgets: { perDayUsd: 50 }, hasJournal: true },
  { what: 'under a cap in money, taken over by a daemon without the journal', budgets: { perDayUsd: 50 }, hasJournal: false },
])('what a kill leaves of a request, its sub-agent and a graph counts for their root runs $what', async ({ budgets, hasJournal }) => {
  const clock = createStepClock();
  const agent = { model: 'mock/mock-fast', maxTokens: 500, tools: { profile: 'full' as const }, budgets };
  const config = { agents: { default: agent, second: agent }, autonomy: { keepAliveMs: 60_000 } };
  let hanging = 0;
  let graphId: string;
  {
    await using dying = await startTestServer({
      clock,
      config,
      provider: { answer: (request) => (hangAt(request) ? ((hanging += 1), { hang: true }) : answerTo(request)) },
    });
    dying.client.call('agent.execute', { message: 'Delegate' }).catch(() => undefined);
    ({ graphId } = await dying.client.call('graph.execute', {
      nodes: [
        { node_id: 'a', task: 'Do one.', agent: 'default' },
        { node_id: 'b', task: 'Do two.', agent: 'second', depends_on: ['a'], context_mode: 'summary' },
      ],
    }));
    await expect.poll(() => (clock.advance(1), hanging), { timeout: 30_000 }).toBe(3);
    // A kill loses the records of the last half second; a search stores them.
    await dying.client.call('obs.trace.search', { since: '1h' });
    await copyHome(dying.homeDir, homeDir);
  }
  if (!hasJournal) await rm(join(homeDir, 'data', 'model-calls.journal'));
  {
    // Nothing is answered yet: what is left of the budgets of the root runs counts what the killed process had in memory.
    await using resumed = await startTestServer({ homeDir, clock, config, provider: { answer: () => ({ hang: true }) } });
    const { booked, roots } = await sumsOf(resumed);
    expect(roots).toBe(booked);
    expect(booked).toBeGreaterThan(0);
  }
  // The time at which a part of a turn began distinguishes it from others.
  clock.advance(1000);
  await using server = await startTestServer({ homeDir, clock, config, provider: { answer: answerTo } });
  const isOver = async () => (await sumsOf(server)).states.every((state) => state !== 'active');
  await expect.poll(() => (clock.advance(1), isOver()), { timeout: 30_000 }).toBe(true);
  const { booked, roots } = await sumsOf(server);
  expect(roots).toBe(booked);
  await server.client.call('obs.trace.search', { since: '1h' });
  const traced = await telemetrySql(homeDir, 'SELECT cost_nano FROM trace_record');
  // Without the journal, nothing knows the calls of a turn that continues, which were booked before the kill.
  if (hasJournal) expect(traced.reduce((sum, row) => sum + Number(row['cost_nano']), 0)).toBe(booked);
  // What the graph lost belongs to the node that its call was made for.
  const nodes = await sql(homeDir, `SELECT cost_nano FROM graph_node WHERE graph_id = '${graphId}' ORDER BY place`);
  const { runs } = await server.client.call('run.list', {});
  const ofGraph = runs.find(({ rootRunId }) => !rootRunId.startsWith('root-turn-'));
  expect(nodes.reduce((sum, row) => sum + Number(row['cost_nano']), 0)).toBe(nano(ofGraph?.cost ?? null));
  expect(await sql(homeDir, 'SELECT * FROM work_part')).toEqual([]);
});

test('what a kill leaves of an evaluation under a cap in money is booked as one, so that no report counts it as asked for', async () => {
  const clock = createStepClock();
  const config = { agents: { default: { model: 'mock/mock-fast', maxTokens: 500, budgets: { perDayUsd: 50 } } } };
  {
    let hanging = 0;
    await using dying = await startTestServer({ clock, config, provider: { answer: () => ((hanging += 1), { hang: true }) } });
    await dying.client.call('eval.run', { cases: [{ name: 'one', input: 'Say it', checks: { contains: ['x'] } }] });
    await expect.poll(() => (clock.advance(1), hanging), { timeout: 30_000 }).toBe(1);
    await copyHome(dying.homeDir, homeDir);
  }
  await using server = await startTestServer({ homeDir, clock, config, provider: { answer: answerTo } });
  const { rows } = await server.client.call('usage.report', { groupBy: ['operation'] });
  expect(rows.map(({ keys, costUsd }) => [keys[0], nano(costUsd) > 0])).toEqual([['evaluation', true]]);
  expect(await server.client.call('obs.billing.total', {})).toMatchObject({ callCount: 0, totalCost: 0 });
  const found = await server.client.call('obs.trace.search', { since: '1h', includeSynthetic: true });
  expect(found.rows.map(({ outcome, costUsd }) => [outcome, nano(costUsd)])).toContainEqual(['failed', nano(rows[0]?.costUsd ?? 0)]);
  expect((await server.client.call('obs.trace.search', { since: '1h' })).rows).toEqual([]);
});

test('a call that a stop ends after its run counts for that run, its root and the books', async () => {
  const clock = createStepClock();
  const agent = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };
  const config = { agents: { default: agent }, security: { agentToAgent: { subagentContext: { maxResultTokens: 1000 } } } };
  let condensing = 0;
  await using server = await startTestServer({
    clock,
    config,
    provider: {
      answer(request) {
        const sent = JSON.stringify(request.body);
        if (sent.includes('Condense the report')) return ((condensing += 1), { hang: true });
        return sent.includes('Find it.') && !sent.includes('Delegate') ? { text: 'word '.repeat(2000) } : answerTo(request);
      },
    },
  });
  const { client } = server;
  await client.call('agent.execute', { message: 'Delegate' });
  await expect.poll(() => (clock.advance(1), condensing), { timeout: 30_000 }).toBe(1);
  const [run] = (await client.call('subagent.list', {})).runs;
  await client.call('run.kill', { rootRunId: run?.rootRunId ?? '' });
  await expect.poll(async () => (await client.call('usage.report', { groupBy: ['operation'] })).rows.length, { timeout: 30_000 }).toBe(3);
  const { booked, roots } = await sumsOf(server);
  const traced = await client.call('obs.trace.get', { ref: run?.rootRunId ?? '' });
  const sum = (records: typeof traced.records) => records.reduce((total, { costNano }) => total + (costNano ?? 0), 0);
  expect([roots, sum(traced.records)]).toEqual([booked, booked]);
  const [row] = await sql(server.homeDir, 'SELECT telemetry_json AS telemetry FROM sub_agent_run');
  const own = traced.records.find(({ kind, refs }) => kind === 'turn' && refs['runId'] !== undefined);
  expect(nano(JSON.parse(String(row?.['telemetry'])).costTotal)).toBe(sum(traced.records.filter((one) => one === own || one.kind === 'compaction')));
});

test('a call of a run that was stopped, noted before a kill and not booked, counts for that run and its root', async () => {
  const clock = createStepClock();
  const config = { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' as const } } } };
  const options = { homeDir, clock, config, provider: { answer: answerTo } };
  {
    await using server = await startTestServer(options);
    const over = server.heard('session:sub_agent_lifecycle_ended');
    await server.client.call('agent.execute', { message: 'Delegate' });
    await expect.poll(() => (clock.advance(1), over.length), { timeout: 30_000 }).toBe(1);
  }
  const [turn] = await sql(homeDir, `SELECT * FROM turn WHERE origin = 'subagent'`);
  const text = (row: Record<string, unknown> | undefined, name: string) => String(row?.[name]);
  const [ended] = await sql(homeDir, 'SELECT id, root_run_id, telemetry_json FROM sub_agent_run');
  const of = {
    id: text(turn, 'id'),
    agentId: 'default',
    principalId: text(turn, 'principal_id'),
    conversationRef: text(turn, 'conversation_ref'),
    turn: {
      conversationRef: text(turn, 'conversation_ref'),
      sessionKey: text(turn, 'session_key'),
      origin: 'subagent',
      traceId: text(turn, 'trace_id'),
      startedAtMs: Number(turn?.['started_at_ms']),
      bootId: text(turn, 'boot_id'),
      rootRunId: text(ended, 'root_run_id'),
      refs: { runId: text(ended, 'id') },
    },
  };
  const record = {
    provider: 'mock',
    modelId: 'mock-fast',
    operation: 'subagent',
    usage: { input: 777, output: 33, cacheRead: 0, cacheWrite: 0, estimated: false },
    cost: { input: 777_000, output: 66_000, cacheRead: 0, cacheWrite: 0 },
    savedNano: 0,
    latencyMs: 5,
    startedAtMs: clock.now(),
    outcome: 'ok',
  };
  await writeFile(join(homeDir, 'data', 'model-calls.journal'), `${JSON.stringify({ is: 'made', of, record })}\n`);
  await using server = await startTestServer(options);
  const { booked, roots } = await sumsOf(server);
  expect(roots).toBe(booked);
  const costOf = (row: Record<string, unknown> | undefined) => nano(JSON.parse(text(row, 'telemetry_json')).costTotal);
  const [after] = await sql(homeDir, 'SELECT telemetry_json FROM sub_agent_run');
  expect(costOf(after)).toBe(costOf(ended) + 843_000);
});
