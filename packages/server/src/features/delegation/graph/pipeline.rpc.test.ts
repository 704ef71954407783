import type { FakeAnswer } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { type GraphServer, openGraphs } from './testing/open-graphs.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

type Config = NonNullable<NonNullable<Parameters<typeof openGraphs>[0]>['config']>;

async function start(config: Config = {}): Promise<GraphServer> {
  const tools = { allow: ['pipeline', 'ls', 'sessions_history'] };
  const server = await openGraphs({
    config: { ...config, agents: { default: { model: 'mock/mock-fast', tools }, second: { model: 'mock/mock-fast', tools }, ...config.agents } },
  });
  open.push(server);
  return server;
}

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

let calls = 0;
const callOf = (args: object): FakeAnswer => ({ toolCalls: [{ id: `call_${(calls += 1)}`, name: 'pipeline', arguments: JSON.stringify(args) }] });

/** The agent makes these calls in sequence and then answers "Done."; all other turns are answered by `others`. */
function play(server: GraphServer, steps: readonly object[], others: (text: string, body: Asked) => FakeAnswer) {
  const results: string[] = [];
  let next = 0;
  server.provider.setAnswer(({ body }) => {
    const asked = body as Asked;
    const text = JSON.stringify(asked);
    if (!text.includes('Build a graph')) return others(text, asked);
    const last = asked.messages.at(-1);
    if (last?.role === 'tool') results.push(last.content);
    const step = text.includes('has ended') ? undefined : steps[next];
    next += 1;
    return step === undefined ? { text: text.includes('has ended') ? 'Reported.' : 'Done.' } : callOf(step);
  });
  return { results, run: () => server.client.call('agent.execute', { message: 'Build a graph.' }) };
}

const nodes = [
  { node_id: 'a', task: 'Part one.', agent: 'second' },
  { node_id: 'b', task: 'Part two after {{a.result}}.', depends_on: ['a'] },
];

test('an agent defines, runs, inspects, saves and loads graphs, and is notified of the end in its conversation', async () => {
  const server = await start();
  const authored = server.heard('pipeline:authored');
  const asked: string[] = [];
  const { results, run } = play(
    server,
    [
      { action: 'define', nodes },
      { action: 'define', nodes: [{ node_id: 'a', task: 'x', depends_on: ['b'] }] },
      { action: 'define', nodes: [{ node_id: 'a' }] },
      { action: 'save', label: 'Plan', nodes },
      { action: 'save', label: 'Plan', nodes: nodes.slice(0, 1) },
      { action: 'execute', nodes, label: 'Team' },
      // Names chosen by agents are text from outside.
      { action: 'list' },
    ],
    (text) => (asked.push(text), { text: 'PART' }),
  );
  const { conversationRef: ref } = await run();
  expect(results[0]).toContain('"executionOrder"');
  expect(results[1]).toMatch(/nodes\.0\.depends_on: missing_dependency/);
  expect(results[2]).toMatch(/nodes\.0\.task: /);
  expect(results[6]).toMatch(/^<<<UNTRUSTED-TEXT [^>]*source="sub-agent">>>/);
  const listed = results[6]?.split('\n').slice(1, -1).join('\n') ?? '';
  expect(JSON.parse(listed)).toMatchObject({ entries: [{ label: 'Plan', nodeCount: 1, agentId: 'default' }], total: 1 });
  const { graphId } = JSON.parse(results[5] ?? '') as { graphId: string };
  const view = await server.ended(graphId);
  expect(view).toMatchObject({ status: 'completed', rootRunId: expect.stringMatching(/^root-turn-/), nodes: { b: { output: 'PART' } } });
  // An agent that read nothing from outside may give instructions; without an agent id it means itself.
  expect(asked[0]).toContain('Your task:\\nPart one.');
  const { runs } = await server.client.call('subagent.list', {});
  expect(runs.map(({ nodeId, agentId, depth }) => `${nodeId} ${agentId} ${depth}`).toSorted()).toEqual(['a second 1', 'b default 1']);
  const history = async () => (await server.client.call('session.history', { conversationRef: ref })).messages;
  await expect.poll(async () => (server.clock.advance(1), (await history()).at(-1)?.content)).toBe('Reported.');
  const counts = authored.map(({ action, valid, nodeCount, errorCount }) => ({ action, valid, nodeCount, errorCount }));
  expect(counts).toEqual([
    { action: 'define', valid: true, nodeCount: 2, errorCount: 0 },
    { action: 'define', valid: false, nodeCount: 1, errorCount: 1 },
    { action: 'define', valid: false, nodeCount: 1, errorCount: 1 },
    { action: 'execute', valid: true, nodeCount: 2, errorCount: 0 },
  ]);
});

test('text of a tainted agent is not an instruction to others', async () => {
  const server = await start();
  const asked: string[] = [];
  server.provider.setAnswer(({ body }) => {
    const text = JSON.stringify(body);
    if (!text.includes('Build a graph')) return (asked.push(text), { text: 'PART' });
    const tools = (body as Asked).messages.filter(({ role }) => role === 'tool').length;
    if (tools === 0) return callOf({ action: 'list' });
    return tools === 1 ? callOf({ action: 'execute', label: 'Evil goal', nodes }) : { text: 'Done.' };
  });
  await server.client.call('agent.execute', { message: 'Hello' });
  asked.length = 0;
  await server.client.call('agent.execute', { message: 'Build a graph.' });
  await expect.poll(() => (server.clock.advance(1), asked.length)).toBeGreaterThanOrEqual(1);
  expect(asked[0]).toMatch(
    /Overall goal:\\n<<<UNTRUSTED-TEXT.*Evil goal.*END-UNTRUSTED-TEXT.*Your task:\\n<<<UNTRUSTED-TEXT [^>]*source=\\"sub-agent\\".*Part one/s,
  );
});

test('an agent without the capability changes nothing, but can list graphs', async () => {
  const server = await start({ autonomy: { profile: 'assistant' } });
  const audited = server.heard('capability:audited');
  const { results, run } = play(
    server,
    [{ action: 'define', nodes }, { action: 'execute', nodes }, { action: 'save', label: 'x', nodes }, { action: 'status' }],
    () => ({ text: 'x' }),
  );
  await run();
  expect(results.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => expect.stringContaining('Capability denied: orch:graph')));
  expect(results[3]).toContain('"graphs": []');
  expect(audited).toMatchObject([{ capability: 'orch:graph', decision: 'deny' }]);
  expect((await server.client.call('graph.runs', {})).total).toBe(0);
});

test('the policy decides which agents may be started, and whether any may', async () => {
  const server = await start({ security: { agentToAgent: { allowAgents: ['third'] } }, agents: { third: { model: 'mock/mock-fast' } } });
  const asks = play(server, [{ action: 'execute', nodes }], () => ({ text: 'x' }));
  await asks.run();
  expect(asks.results[0]).toContain('Sub-agents of agent second are not allowed here');
  const closed = await start({ security: { agentToAgent: { enabled: false } } });
  const refused = play(closed, [{ action: 'execute', nodes }], () => ({ text: 'x' }));
  await refused.run();
  expect(refused.results[0]).toContain('security.agentToAgent.enabled');
});

test('an agent sees only its own graphs and answers no gate, and a pause refuses graphs too', async () => {
  const server = await start();
  const theirs = await server.execute([{ node_id: 'g', task: 'Sure?', type_id: 'approval-gate' }], {
    announceChannelType: 'gateway',
    announceChannelId: 'inbox',
    label: 'theirs',
  });
  const { results, run } = play(
    server,
    [
      { action: 'status' },
      { action: 'status', graphId: theirs },
      { action: 'answer', graphId: theirs },
      { action: 'execute', nodes, announceChannelType: 'gateway' },
    ],
    () => ({ text: 'x' }),
  );
  await run();
  expect(results[0]).toContain('"graphs": []');
  expect(results[1]).toContain('Graph not found');
  expect(results[2]).toMatch(/action/);
  expect(results[3]).toContain('announceChannelType');
  await server.client.call('subagent.pause', {});
  await expect(server.client.call('graph.execute', { nodes })).rejects.toMatchObject({ code: 'precondition_failed' });
  await server.client.call('subagent.resume', {});
  await server.client.call('graph.cancel', { graphId: theirs });
  expect((await server.ended(theirs)).status).toBe('cancelled');
});
