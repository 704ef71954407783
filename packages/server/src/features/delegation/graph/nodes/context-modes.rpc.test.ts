import type { FakeAnswer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type GraphServer, type Nodes, openGraphs, scripted } from '../testing/open-graphs.ts';

let server: GraphServer;
beforeAll(async () => {
  server = await openGraphs({
    config: {
      agents: {
        second: { model: 'mock/mock-fast', maxTokens: 500 },
        third: { model: 'mock/mock-fast', tools: { profile: 'none', deny: ['node_result'] } },
      },
      autonomy: { guards: { budget: { tokens: 100_000 } } },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Longer than a graph passes on, and than a row keeps. */
const long = `BEGIN ${'word '.repeat(6_000)}MIDDLE ${'word '.repeat(20_000)}END`;
const summaries: string[] = [];
let summary: FakeAnswer | undefined;
function script(rules: Parameters<typeof scripted>[0]) {
  const { asked, answer } = scripted(rules);
  server.provider.setAnswer((request) => {
    const sent = JSON.stringify(request.body);
    if (!sent.includes('Summarize the report below')) return answer(request);
    summaries.push(sent);
    return summary;
  });
  return asked;
}
beforeEach(() => {
  summaries.length = 0;
  summary = { text: 'In short: terms.' };
});

/** Returns the input of the agent of a node. */
const inputOf = (asked: readonly string[], node: string): string => asked.find((text) => text.endsWith(`Use it in ${node}`)) ?? '';

const first: Nodes[number] = { node_id: 'a', task: 'Make it', agent: 'default' };
const second = (context_mode: 'refs' | 'summary', node_id = 'b', agent = 'second'): Nodes[number] => ({
  node_id,
  task: `Use it in ${node_id}`,
  agent,
  depends_on: ['a'],
  context_mode,
});

test('runDetail has complete outputs, also as files, and as many as graph.runs counts', async () => {
  script({ 'Make it': { text: long } });
  const graphId = await server.execute([first]);
  await server.ended(graphId);
  const { nodes } = await server.client.call('graph.runDetail', { graphId });
  expect(nodes).toEqual([{ nodeId: 'a', status: 'completed', output: long, artifacts: [{ filename: 'a.txt', content: long }] }]);
  const run = (await server.client.call('graph.runs', {})).runs.find((one) => one.graphId === graphId);
  expect(run?.fileCount).toBe(nodes.flatMap(({ artifacts }) => artifacts).length);
  expect((await server.client.call('graph.outputs', { graphId })).outputs['a']).toHaveLength(12_000);
});

test('refs only names results, which the node reads with node_result, but not those of other nodes', async () => {
  const read = (args: object): FakeAnswer => ({
    toolCalls: [{ id: `c${JSON.stringify(args).length}`, name: 'node_result', arguments: JSON.stringify(args) }],
  });
  const asked = script({
    'Make it': { text: long },
    'Use it in b': (_asked, time) =>
      [read({ node: 'a', offset: 30_000, limit: 40 }), read({ node: 'c' }), { text: 'Used.' }][time - 1] ?? { text: 'Used.' },
  });
  const before = server.provider.requests.length;
  const graphId = await server.execute([first, second('refs'), { node_id: 'c', task: 'Make it too', agent: 'default' }]);
  expect((await server.ended(graphId)).nodes['b']).toMatchObject({ status: 'completed', output: 'Used.' });
  const input = inputOf(asked, 'b');
  expect(input).toContain('node_result {"node":"a"}');
  expect(input).not.toContain('BEGIN');
  const sent = server.provider.requests.slice(before).map(({ body }) => JSON.stringify(body));
  const last = sent.findLast((body) => body.includes(String.raw`Your task:\nUse it in b`)) ?? '';
  expect(last).toContain(long.slice(30_000, 30_040));
  expect(last).toContain(`of ${long.length}`);
  expect(last).toContain('There is no result of a node');
  // Only runs of nodes have the tool.
  expect(sent.filter((body) => body.includes('"name":"node_result"')).length).toBeGreaterThan(0);
  const plain = server.provider.requests.length;
  await server.client.call('agent.execute', { message: 'Hello' });
  expect(JSON.stringify(server.provider.requests[plain]?.body)).not.toContain('node_result');
});

test('node_result is not offered to an agent that denies it', async () => {
  script({ 'Make it': { text: 'Made.' }, 'Use it in b': { text: 'Used.' } });
  const before = server.provider.requests.length;
  await server.ended(await server.execute([first, second('refs', 'b', 'third')]));
  const used = server.provider.requests.slice(before).filter(({ body }) => JSON.stringify(body).includes(String.raw`Your task:\nUse it in b`));
  expect(used.map(({ body }) => (body as { tools?: unknown }).tools)).toEqual([undefined]);
});

test('a model summarizes a result once for all nodes that receive it; short results are passed on in full', async () => {
  const asked = script({ 'Make it': { text: long }, 'Use it': { text: 'Used.' } });
  await server.ended(await server.execute([first, second('summary'), second('summary', 'c')]));
  expect(summaries).toHaveLength(1);
  for (const node of ['b', 'c']) expect(inputOf(asked, node)).toMatch(/Summary of the result of a:\n<<<UNTRUSTED-TEXT [^\n]*>>>\nIn short: terms\./);
  const short = script({ 'Make it': { text: 'Made.' }, 'Use it': { text: 'Used.' } });
  await server.ended(await server.execute([first, second('summary')]));
  expect(summaries).toHaveLength(1);
  expect(inputOf(short, 'b')).toMatch(/Result of a:\n<<<[^\n]*>>>\nMade\./);
});

test('without a summary of the model, the beginning of the result is used', async () => {
  summary = { status: 400, error: { message: 'no' } };
  const asked = script({ 'Make it': { text: long }, 'Use it': { text: 'Used.' } });
  const view = await server.ended(await server.execute([first, second('summary')]));
  expect(view.status).toBe('completed');
  expect(inputOf(asked, 'b')).toMatch(/Beginning of the result of a:\n<<<[^\n]*>>>\nBEGIN word/);
});

/** Returns the records of the summaries of a graph, with how they ended. */
async function tracedSummaries(graphId: string) {
  const { records } = await server.client.call('obs.trace.get', { ref: graphId });
  return records.filter(({ kind, refs }) => kind === 'compaction' && refs['nodeId'] !== undefined);
}

test('a summary that the budget of the root run does not cover is not made, and its trace names the budget', async () => {
  const numbers = Array.from({ length: 10_000 }, (_, n) => n).join(' ');
  const asked = script({ 'Make it': { text: numbers, usage: { input: 97_500, output: 10 } }, 'Use it': { text: 'Used.' } });
  const graphId = await server.execute([first, second('summary')]);
  expect((await server.ended(graphId)).status).toBe('completed');
  expect(summaries).toEqual([]);
  expect(inputOf(asked, 'b')).toMatch(/Beginning of the result of a:/);
  expect(await tracedSummaries(graphId)).toMatchObject([
    { outcome: 'failed', modelCalls: 0, error: { kind: 'budget_exceeded', text: expect.stringContaining('autonomy.guards.budget.tokens') } },
  ]);
});

test('a summary counts against the budget of its graph', async () => {
  summary = { text: 'In short: terms.', usage: { input: 30_000, output: 10 } };
  script({ 'Make it': { text: long, usage: { input: 500, output: 10 } }, 'Use it': { text: 'Used.' } });
  const view = await server.ended(await server.execute([first, second('summary')], { budget: { maxTokens: 20_000 } }));
  expect(view).toMatchObject({ cancelReason: 'budget', nodes: { b: { status: 'failed', error: 'budget', tokens: 30_010 } } });
});

test('a stop ends a summary that is being made; what it used is booked', async () => {
  summary = { hang: true };
  script({ 'Make it': { text: long } });
  const booked = async () =>
    (await server.client.call('usage.report', { groupBy: ['operation'] })).rows.find(({ keys }) => keys[0] === 'condensation');
  const before = (await booked())?.calls ?? 0;
  const graphId = await server.execute([first, second('summary')]);
  await expect.poll(() => (server.clock.advance(1), summaries.length)).toBe(1);
  await server.client.call('run.kill', { rootRunId: (await server.view(graphId)).rootRunId ?? '' });
  expect(await server.ended(graphId)).toMatchObject({ status: 'cancelled' });
  await expect.poll(async () => (await booked())?.calls).toBe(before + 1);
  expect(await tracedSummaries(graphId)).toMatchObject([{ outcome: 'cancelled', modelCalls: 1, refs: { graphId, nodeId: 'b' } }]);
});

test('nodes without an agent are run by the agent that the graph is saved for', async () => {
  script({ 'Make it': { text: 'Made.' }, 'Use it': { text: 'Used.' } });
  const nodes: Nodes = [
    { node_id: 'a', task: 'Make it' },
    { ...second('summary'), agent: 'third' },
  ];
  const saved = await server.client.call('graph.save', { label: 'Owned', agentId: 'second', nodes });
  expect(saved.warnings).toEqual([]);
  const loaded = await server.client.call('graph.load', { id: saved.id });
  expect(loaded).toMatchObject({ agentId: 'second', warnings: [], nodes: [{ node_id: 'a' }, { node_id: 'b', agent: 'third' }] });
  const { warnings } = await server.client.call('graph.execute', { graphId: loaded.graphId });
  expect(warnings).toEqual([]);
  await server.ended(loaded.graphId);
  const { runs } = await server.client.call('subagent.list', {});
  const agentOf = (nodeId: string) => runs.find((run) => run.graphId === loaded.graphId && run.nodeId === nodeId)?.agentId;
  expect([agentOf('a'), agentOf('b')]).toEqual(['second', 'third']);
  // A token that may not use that agent cannot start it this way.
  const ada = await server.as(['rpc'], { agents: ['default'] });
  await expect(ada.call('graph.save', { label: 'Owned', agentId: 'second', nodes: [first] })).rejects.toMatchObject({ code: expect.any(String) });
});
