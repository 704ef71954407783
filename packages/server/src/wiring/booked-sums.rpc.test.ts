import {
  createStepClock,
  type FakeMedia,
  type FakeProvider,
  type FakeRequest,
  silentWav,
  sql,
  startFakeMedia,
  startFakeProvider,
  startTestServer,
  telemetrySql,
  type TestServer,
  tinyPng,
} from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';

const nano = (usd: number | null) => Math.round((usd ?? 0) * 1e9);
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Slow, so that no search for memories gives up waiting for its embedding and is booked later. */
const clock = createStepClock();
let media: FakeMedia;
let vectors: FakeProvider;
let server: TestServer;
/** Long enough to be condensed for a requester, and summarized for a node. */
const report = `BEGIN ${'word '.repeat(2000)}END`;
/** What the provider reported for each answer. */
const answered: { readonly input: number; readonly output: number }[] = [];

function answerTo({ path, body }: FakeRequest) {
  if (!path.endsWith('/chat/completions')) return undefined;
  const sent = JSON.stringify(body);
  // Different figures for each call, so that no sum is right by chance.
  const usage = { input: 1000 + answered.length, output: 10 + 3 * answered.length };
  answered.push(usage);
  if (sent.includes('You grade')) return { text: '{"pass": true, "reason": "polite"}', usage };
  if (/Condense the report|Summarize the report/.test(sent)) return { text: 'In short: words.', usage };
  if (sent.includes('Find the answer.') && !sent.includes('Please delegate')) return { text: report, usage };
  if (/Your task:.{0,4}First\./.test(sent)) return { text: report, usage };
  // The agent of the second node draws and speaks.
  if (/Your task:.{0,4}Second\./.test(sent) && !sent.includes('"role":"tool"')) {
    const image = { id: 'draw', name: 'image_generate', arguments: JSON.stringify({ prompt: 'A red dot' }) };
    const speech = { id: 'speak', name: 'tts_synthesize', arguments: JSON.stringify({ text: 'Hello there' }) };
    return { toolCalls: [image, speech], usage };
  }
  if (sent.includes('You write the title')) return { text: 'Delegation', usage };
  if (sent.includes('You review a conversation')) return { text: '[]', usage };
  const delegates = sent.includes('Please delegate') && !sent.includes('"role":"tool"');
  const spawn = { id: 'spawn', name: 'sessions_spawn', arguments: JSON.stringify({ task: 'Find the answer.' }) };
  return delegates ? { toolCalls: [spawn], usage } : { text: 'Done.', usage };
}

beforeAll(async () => {
  [media, vectors] = await Promise.all([startFakeMedia(), startFakeProvider()]);
  const provider = { type: 'openai' as const, apiKey: 'key-of-media', baseUrl: `${media.url}/v1` };
  const seeing = { type: 'google' as const, apiKey: 'key-of-google', baseUrl: `${media.url}/v1beta` };
  server = await startTestServer({
    clock,
    provider: { answer: answerTo },
    config: {
      providers: {
        vectors: { type: 'openai-compatible', baseUrl: vectors.url, apiKey: 'k', models: [{ id: 'vec', cost: { input: 7, output: 0 } }] },
      },
      embedding: { provider: 'vectors', model: 'vec' },
      agents: {
        default: { model: 'mock/mock-fast', tools: { profile: 'full' }, memory: { review: { minMessages: 2 } } },
        other: { model: 'mock/mock-fast' },
      },
      approvals: { mode: 'auto' },
      security: { agentToAgent: { subagentContext: { maxResultTokens: 1000 } } },
      media: { vision: { models: ['mock/mock-fast'] }, transcription: { providers: [provider] }, video: { providers: [seeing] } },
      tts: { providers: [provider] },
      imageGen: { providers: [provider] },
    },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await media[Symbol.asyncDispose]();
  await vectors.close();
});

const kinds = [
  'condensation',
  'embedding',
  'evaluation',
  'imageGeneration',
  'interactive',
  'memoryReview',
  'speech',
  'subagent',
  'transcription',
  'video',
  'vision',
];

const Nanos = z.array(z.object({ nano: z.number() }));

test('delegated, generated, judged and replayed calls are in the books, the reports, the traces and the journal of the provider', async () => {
  const { client } = server;
  const announced = server.heard('session:sub_agent_lifecycle_ended');
  const graphs = server.heard('graph:completed');
  // With a memory, every turn has its question embedded.
  await client.call('memory.store', { content: 'The answer is green.' });
  const { conversationRef } = await client.call('agent.execute', { message: 'Please delegate', sessionKey: 'sums:all' });
  await expect.poll(() => (clock.advance(1), announced.some(({ announced: how }) => how === 'turn')), { timeout: 30_000 }).toBe(true);
  const { graphId } = await client.call('graph.execute', {
    label: 'Sums',
    nodes: [
      { node_id: 'one', task: 'First.', agent: 'other' },
      { node_id: 'two', task: 'Second.', agent: 'default', depends_on: ['one'], context_mode: 'summary' },
    ],
  });
  await expect.poll(() => (clock.advance(1), graphs.length), { timeout: 30_000 }).toBe(1);
  await client.call('image.generate', { prompt: 'A red dot' });
  await client.call('tts.synthesize', { text: 'Hello there' });
  await client.call('image.analyze', { source_type: 'base64', source: tinyPng.toString('base64'), mime_type: 'image/png' });
  const wav = silentWav(1).toString('base64');
  expect(await client.call('audio.transcribe', { audio: wav })).toMatchObject({ text: 'Hello from the recording.' });
  const film = Buffer.concat([Buffer.from('\0\0\0\u0020ftypisom\0\0\u0002\0isomiso2avc1mp41', 'latin1'), Buffer.alloc(2000)]);
  expect(await client.call('media.test.video', { video: film.toString('base64') })).toMatchObject({ description: 'A cat jumps.' });
  expect(await client.call('session.suggest_title', { conversationRef })).toMatchObject({ title: 'Delegation', stored: true });
  expect((await client.call('memory.review', {})).conversationsReviewed).toBeGreaterThan(0);
  const { messages } = await client.call('session.history', { conversationRef });
  await client.call('obs.trace.replay', { ref: messages.find(({ turnId }) => turnId !== null)?.turnId ?? '', model: 'mock/mock-fast' });
  const judge = { rubric: 'It is polite.', model: 'mock/mock-fast' };
  const { evalId } = await client.call('eval.run', { cases: [{ name: 'polite', input: 'Say it', checks: { judge } }] });
  await expect.poll(async () => (clock.advance(1), (await client.call('eval.get', { evalId })).run.state), { timeout: 30_000 }).toBe('completed');

  const rows = Nanos.parse(await sql(server.homeDir, 'SELECT cost_nano AS nano FROM model_call'));
  const all = { calls: rows.length, nano: sum(rows.map((row) => row.nano)) };
  const { rows: operations } = await client.call('usage.report', { groupBy: ['operation'] });
  expect(operations.map(({ keys }) => keys[0]).toSorted()).toEqual(kinds);
  const chat = (await client.call('usage.report', { groupBy: ['provider'] })).rows.find(({ keys }) => keys[0] === 'mock');
  // The journal of the provider: 1 and 2 dollars for a million tokens.
  expect({
    calls: chat?.calls,
    input: chat?.inputTokens,
    output: chat?.outputTokens,
    nano: nano(chat?.costUsd ?? null),
  }).toEqual({
    calls: answered.length,
    input: sum(answered.map(({ input }) => input)),
    output: sum(answered.map(({ output }) => output)),
    nano: sum(answered.map(({ input, output }) => input * 1000 + output * 2000)),
  });
  const { totals } = await client.call('usage.report', { groupBy: ['agent'] });
  expect({ calls: totals.calls, nano: nano(totals.costUsd) }).toEqual(all);
  const total = await client.call('obs.billing.total', { includeSynthetic: true });
  expect({ calls: total.callCount, nano: nano(total.totalCost) }).toEqual(all);
  const { providers } = await client.call('obs.billing.byProvider', { includeSynthetic: true });
  expect({ calls: sum(providers.map(({ callCount }) => callCount)), nano: sum(providers.map(({ totalCost }) => nano(totalCost))) }).toEqual(all);
  const agents = await Promise.all(['default', 'other'].map((agentId) => client.call('obs.billing.byAgent', { agentId, includeSynthetic: true })));
  expect({ calls: sum(agents.map(({ callCount }) => callCount)), nano: sum(agents.map(({ totalCost }) => nano(totalCost))) }).toEqual(all);
  // Without those that nobody asked for: two of the replay, whose tool is refused, the case with its embedding, and its judge.
  const asked = operations.filter(({ keys }) => keys[0] !== 'evaluation');
  const real = await client.call('obs.billing.total', {});
  expect({ calls: real.callCount, nano: nano(real.totalCost) }).toEqual({
    calls: sum(asked.map(({ calls }) => calls)),
    nano: nano(sum(asked.map(({ costUsd }) => costUsd ?? 0))),
  });
  expect(all.calls - real.callCount).toBe(5);
  // Each conversation; the other calls belong to none.
  const { rows: conversations } = await client.call('usage.report', { groupBy: ['conversation'] });
  let compared = 0;
  for (const { keys, costUsd } of conversations) {
    const [ref] = keys;
    if (ref === null || ref === undefined) continue;
    const session = await client.call('obs.billing.bySession', { conversationRef: ref, includeSynthetic: true });
    expect(nano(session.totalCost), ref).toBe(nano(costUsd));
    compared += 1;
  }
  // Of the request, its sub-agent, and two nodes at least.
  expect(compared).toBeGreaterThanOrEqual(4);
  // Every call is in one trace.
  await client.call('obs.trace.search', { since: '1h', includeSynthetic: true });
  const traced = Nanos.parse(await telemetrySql(server.homeDir, 'SELECT cost_nano AS nano FROM trace_record'));
  expect(sum(traced.map((row) => row.nano))).toBe(all.nano);
  // What the daemon called for the two roots is in their traces and in their sums, and what it called for a node in its cost.
  const recordsOf = async (ref: string) => (await client.call('obs.trace.get', { ref })).records;
  const ofTurn = await recordsOf(messages[0]?.turnId ?? '');
  expect(ofTurn[0]).toMatchObject({ kind: 'turn', id: messages[0]?.turnId });
  const condensing = ofTurn.find(({ facts }) => facts['operation'] === 'condensation');
  const delegated = ofTurn.find(({ kind, refs }) => kind === 'turn' && refs['runId'] !== undefined);
  expect(condensing).toMatchObject({
    kind: 'compaction',
    parentId: delegated?.id,
    traceId: delegated?.traceId,
    rootRunId: delegated?.rootRunId,
  });
  const ofGraph = await recordsOf(graphId);
  expect(
    ofGraph
      .filter(({ refs }) => refs['nodeId'] === 'two')
      .map(({ kind }) => kind)
      .toSorted(),
  ).toEqual(['compaction', 'turn']);
  // No agent reads the condensed result of a node, however long it is.
  expect(ofGraph.filter(({ kind }) => kind === 'compaction')).toHaveLength(1);
  const { runs } = await client.call('run.list', {});
  const graphNano = sum(ofGraph.map(({ costNano }) => costNano ?? 0));
  expect(nano(runs.find(({ rootRunId }) => rootRunId === ofGraph[0]?.rootRunId)?.cost ?? null)).toBe(graphNano);
  // Run, node, graph, root and trace agree, with pictures, speech and searches for memories.
  const costsOf = (records: typeof ofGraph) => sum(records.map(({ costNano }) => costNano ?? 0));
  expect(costsOf(ofGraph.filter(({ kind }) => kind === 'embedding'))).toBeGreaterThan(0);
  expect(costsOf(ofGraph.filter(({ kind }) => kind === 'media'))).toBeGreaterThan(0);
  const status = await client.call('graph.status', { graphId });
  expect(nano('stats' in status ? status.stats.cost : null)).toBe(graphNano);
  const nodes = Nanos.parse(await sql(server.homeDir, `SELECT cost_nano AS nano FROM graph_node WHERE graph_id = '${graphId}' ORDER BY place`));
  const nodeOf = ({ refs, parentId }: (typeof ofGraph)[number]) => refs['nodeId'] ?? ofGraph.find(({ id }) => id === parentId)?.refs['nodeId'];
  expect(nodes.map((node) => node.nano)).toEqual(['one', 'two'].map((id) => costsOf(ofGraph.filter((record) => nodeOf(record) === id))));
  const { runs: subAgents } = await client.call('subagent.list', {});
  expect(subAgents).toHaveLength(3);
  for (const run of subAgents) {
    const records = await recordsOf(run.rootRunId ?? '');
    const own = records.find(({ kind, refs }) => kind === 'turn' && refs['runId'] === run.runId);
    const { telemetry } = z.looseObject({ telemetry: z.looseObject({ costTotal: z.number() }) }).parse(run);
    expect(nano(telemetry.costTotal), run.runId).toBe(
      costsOf(records.filter(({ id, kind, parentId }) => id === own?.id || (parentId === own?.id && kind !== 'turn'))),
    );
  }
});
