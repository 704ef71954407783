import type { FakeAnswer } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { type GraphServer, openGraphs, type Nodes, scripted } from './testing/open-graphs.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function start(options: Parameters<typeof openGraphs>[0] = {}): Promise<GraphServer> {
  const server = await openGraphs(options);
  open.push(server);
  return server;
}

const chain: Nodes = [
  { node_id: 'research', task: 'Collect facts about ${TOPIC}.', agent: 'default' },
  { node_id: 'report', task: 'Write a report from {{research.result}}.', agent: 'second', depends_on: ['research'] },
];

test.each(['http', 'websocket'] as const)('a graph is defined, started, inspected, announced and deleted over %s', async (transport) => {
  const server = await start();
  const { asked, answer } = scripted({ 'Collect facts': { text: 'Tides come twice a day.' }, 'Write a report': { text: 'REPORT' } });
  server.provider.setAnswer(answer);
  const socket = transport === 'websocket' ? server.socket() : undefined;
  const call = (socket ?? server.client).call;
  const heard = { started: server.heard('graph:started'), nodes: server.heard('graph:node_updated'), completed: server.heard('graph:completed') };
  try {
    expect(await call('graph.define', { nodes: chain, label: 'Tides' })).toEqual({
      valid: true,
      nodeCount: 2,
      executionOrder: ['research', 'report'],
      label: 'Tides',
      warnings: [],
      userVariables: ['TOPIC'],
    });
    const started = await call('graph.execute', { nodes: chain, label: 'Tides', variables: { TOPIC: 'tides' } });
    expect(started).toMatchObject({ async: true, nodeCount: 2, label: 'Tides', warnings: [], rootRunId: expect.stringMatching(/^root-rpc-/) });
    const { graphId } = started;
    const view = await server.ended(graphId);
    expect(view).toMatchObject({
      status: 'completed',
      executionOrder: ['research', 'report'],
      edges: [{ from: 'research', to: 'report' }],
      nodes: {
        research: { status: 'completed', output: 'Tides come twice a day.', attempt: 1, runId: expect.stringMatching(/^sr_/) },
        report: { status: 'completed', output: 'REPORT' },
      },
      stats: { total: 2, completed: 2, failed: 0, skipped: 0, running: 0, pending: 0 },
    });
    expect(view.stats.tokens).toBeGreaterThan(40);
    expect(view.stats.cost).toBeGreaterThan(0);
    // The text of one agent is fenced for the other.
    expect(asked[0]).toContain('Collect facts about tides.');
    expect(asked[1]).toMatch(/<<<UNTRUSTED-TEXT [0-9a-f]{32} provenance="clean" source="sub-agent".*>>>\nTides come twice a day\.\n<<<END/s);
    expect(await call('graph.outputs', { graphId: 'Tides' })).toEqual({
      graphId,
      outputs: { research: 'Tides come twice a day.', report: 'REPORT' },
      source: 'memory',
    });
    // Lists say which of several runs of a graph it was.
    const { runs } = await call('subagent.list', {});
    expect(runs.map((one) => ('task' in one ? one.task : '')).toSorted()).toEqual([
      'Collect facts about tides.',
      expect.stringMatching(/^Write a report.*\{\{research\.result\}\}/s),
    ]);
    const { messages } = await call('inbox.list', {});
    expect(messages).toMatchObject([{ source: 'graph', level: 'info', conversationRef: null }]);
    expect(messages[0]?.text).toMatch(/^Graph "Tides".*has completed: 2 of 2 nodes completed\..*## report\nREPORT$/s);
    expect(heard.started).toMatchObject([{ graphId, label: 'Tides', nodeCount: 2, resumed: false }]);
    expect(heard.completed).toMatchObject([{ graphId, status: 'completed', nodesCompleted: 2, nodesFailed: 0, nodesSkipped: 0 }]);
    const states = heard.nodes.map(({ nodeId, status }) => `${nodeId} ${status}`);
    expect([...new Set(states)]).toEqual(['research running', 'research completed', 'report running', 'report completed']);
    expect((await call('graph.runs', {})).runs).toEqual([
      {
        graphId,
        name: 'Tides',
        status: 'completed',
        date: expect.any(String),
        agentId: 'default',
        rootRunId: started.rootRunId,
        variables: { TOPIC: 'tides' },
        startedAt: expect.any(Number),
        completedAt: expect.any(Number),
        tokens: view.stats.tokens,
        cost: view.stats.cost,
        result: 'REPORT',
        nodeCount: 2,
        fileCount: 2,
      },
    ]);
    // The input of each node, as people read it.
    expect(view).toMatchObject({
      variables: { TOPIC: 'tides' },
      nodes: {
        research: { task: 'Collect facts about tides.', agentId: 'default', tokens: expect.any(Number), cost: expect.any(Number) },
        report: { task: expect.stringContaining('{{research.result}}') },
      },
    });
    const { definition, variables } = await call('graph.runDetail', { graphId });
    expect(variables).toEqual({ TOPIC: 'tides' });
    expect((await call('graph.define', definition)).executionOrder).toEqual(['research', 'report']);
    expect((await call('graph.runDetail', { graphId })).nodes).toEqual([
      {
        nodeId: 'research',
        status: 'completed',
        output: 'Tides come twice a day.',
        artifacts: [{ filename: 'research.txt', content: 'Tides come twice a day.' }],
      },
      { nodeId: 'report', status: 'completed', output: 'REPORT', artifacts: [{ filename: 'report.txt', content: 'REPORT' }] },
    ]);
    const list = await call('graph.status', {});
    expect(list).toMatchObject({
      graphs: [{ graphId, status: 'completed' }],
      concurrency: { globalActiveSubAgents: 0, maxGlobalSubAgents: 20, queueDepth: 0 },
    });
    expect(await call('graph.deleteRun', { graphId })).toEqual({ graphId, deleted: true });
    for (const method of ['graph.status', 'graph.outputs', 'graph.runDetail', 'graph.deleteRun'] as const)
      await expect(call(method, { graphId })).rejects.toMatchObject({ code: 'not_found', message: 'Graph not found' });
  } finally {
    socket?.close();
  }
});

test('outputs are evicted from memory and then read from the database; they are cut between code points', async () => {
  const server = await start({ config: { security: { agentToAgent: { graphMaxResultLength: 20_000 } } } });
  server.provider.setAnswer(() => ({ text: `a${'😀'.repeat(7000)}` }));
  const graphId = await server.execute([{ node_id: 'long', task: 'Write.', agent: 'default' }]);
  const view = await server.ended(graphId);
  expect(view.nodes['long']?.output).toBe(`a${'😀'.repeat(249)}`);
  const fresh = await server.client.call('graph.outputs', { graphId });
  expect(fresh).toMatchObject({ source: 'memory', outputs: { long: `a${'😀'.repeat(5999)}` } });
  server.clock.advance(11 * 60_000);
  expect(await server.client.call('graph.outputs', { graphId })).toEqual({ ...fresh, source: 'disk' });
  const detail = await server.client.call('graph.runDetail', { graphId });
  expect(detail.nodes[0]?.output).toHaveLength(14_001);
  server.clock.advance(7 * 24 * 3_600_000);
  // Graphs that ended a week ago are deleted by one of the next checks.
  const isKept = async () => (server.clock.advance(3_600_000), (await server.client.call('graph.runs', {})).total);
  await expect.poll(isKept).toBe(0);
});

test('an invalid graph is refused with every invalid field, and nothing is stored', async () => {
  const server = await start();
  const nodes: Nodes = [
    { node_id: 'a', task: 'x', agent: 'nobody', model: 'mock/none' },
    { node_id: 'b', task: 'x', agent: 'default' },
  ];
  await expect(server.client.call('graph.execute', { nodes })).rejects.toMatchObject({
    code: 'invalid_params',
    issues: [{ path: 'nodes.0.model' }, { path: 'nodes.0.agent', message: 'Agent not found: nobody' }],
  });
  const typed: Nodes = [{ node_id: 'a', task: 'x', type_id: 'debate', type_config: { agents: ['default'] } }];
  for (const method of ['graph.define', 'graph.execute'] as const)
    await expect(server.client.call(method, { nodes: typed })).rejects.toMatchObject({
      code: 'invalid_params',
      issues: [{ path: 'nodes.0.type_config.agents', message: expect.stringContaining('{ agents: [2 to 10 agent ids]') }],
    });
  await expect(server.client.call('graph.execute', {})).rejects.toMatchObject({ issues: [{ path: 'nodes' }] });
  const gate: Nodes = [{ node_id: 'g', task: 'Go on?', type_id: 'approval-gate' }];
  await expect(server.client.call('graph.execute', { nodes: gate })).rejects.toMatchObject({ issues: [{ path: 'announceChannelType' }] });
  await expect(server.client.call('graph.execute', { nodes: gate, announceChannelType: 'gateway' })).rejects.toMatchObject({
    issues: [{ path: 'announceChannelId' }],
  });
  await expect(server.client.call('graph.execute', { nodes: gate, announceChannelType: 'telegram', announceChannelId: '1' })).rejects.toMatchObject({
    issues: [{ path: 'announceChannelType', message: 'no channel has the type "telegram"' }],
  });
  expect((await server.client.call('graph.runs', {})).total).toBe(0);
  expect((await server.client.call('run.list', {})).total).toBe(0);
});

test('a failed node is retried in its conversation after 1, 2 and 4 seconds', async () => {
  const server = await start();
  const { answer, asked } = scripted({ 'Try it': (_, time) => (time < 4 ? { status: 400, error: { message: 'no' } } : { text: 'Got it.' }) });
  server.provider.setAnswer(answer);
  const graphId = await server.execute([{ node_id: 'n', task: 'Try it.', agent: 'default', retries: 3 }]);
  for (const [attempt, waitMs] of [
    [2, 1000],
    [3, 2000],
    [4, 4000],
  ] as const) {
    await server.until(graphId, ({ nodes }) => nodes['n']?.status === 'pending' && nodes['n']?.attempt === attempt);
    const before = asked.length;
    server.clock.advance(waitMs - 200);
    expect((await server.view(graphId)).nodes['n']?.status).toBe('pending');
    server.clock.advance(200);
    await expect.poll(() => (server.clock.advance(1), asked.length)).toBeGreaterThan(before);
  }
  expect(await server.ended(graphId)).toMatchObject({ status: 'completed', nodes: { n: { attempt: 4, output: 'Got it.' } } });
  const { sessions } = await server.client.call('session.list', { kind: 'sub-agent' });
  expect(sessions).toHaveLength(1);
});

test('fail-fast skips the dependents of a failed node; continue lets a barrier decide, and reports missing results', async () => {
  const server = await start();
  const { answer, asked } = scripted({
    'Do bad': { status: 400, error: { message: 'no' } },
    'Do good': { text: 'GOOD' },
    'Do end': { text: 'END' },
  });
  server.provider.setAnswer(answer);
  const nodes: Nodes = [
    { node_id: 'bad', task: 'Do bad.', agent: 'default' },
    { node_id: 'good', task: 'Do good.', agent: 'default' },
    { node_id: 'end', task: 'Do end.', agent: 'default', depends_on: ['bad', 'good'], barrier_mode: 'best-effort' },
  ];
  const fast = await server.ended(await server.execute(nodes));
  expect(fast).toMatchObject({ status: 'failed', nodes: { bad: { status: 'failed' }, good: { status: 'completed' }, end: { status: 'skipped' } } });
  expect((await server.client.call('inbox.list', {})).messages[0]).toMatchObject({
    level: 'alert',
    text: expect.stringMatching(/failed: 1 of 3 nodes completed, 1 failed, 1 skipped\..*- bad:/s),
  });
  const on = await server.ended(await server.execute(nodes, { on_failure: 'continue' }));
  expect(on).toMatchObject({ status: 'completed', nodes: { bad: { status: 'failed' }, end: { status: 'completed', output: 'END' } } });
  expect(asked.at(-1)).toContain('bad failed; no result is available.');
  expect(asked.at(-1)).toContain('GOOD');
});

test('at most four nodes of a graph run at once', async () => {
  const server = await start();
  server.provider.setAnswer(() => ({ hang: true }));
  const nodes: Nodes = Array.from({ length: 7 }, (_, index) => ({ node_id: `n${index}`, task: `Do ${index}.`, agent: 'default' }));
  const graphId = await server.execute(nodes);
  const view = await server.until(graphId, ({ stats }) => stats.running === 4);
  expect(view.stats).toMatchObject({ running: 4, pending: 3 });
  await expect.poll(() => server.provider.served()).toBe(4);
  await server.client.call('run.kill', { rootRunId: view.rootRunId ?? '' });
});

test('debate, vote, refine, collaborate and map-reduce run all of their agents', async () => {
  const server = await start();
  const { answer, asked } = scripted({
    'The debate below is over': { text: 'SYNTHESIS' },
    'You take part in a debate': (_, time) => ({ text: `ARGUMENT ${time}` }),
    'Improve the version below': { text: 'POLISHED' },
    'Write a text': { text: 'DRAFT' },
    'You work on the task together': (_, time) => ({ text: `PART ${time}` }),
    'Combine them into one': { text: 'REDUCED' },
    'Count birds': (text) => ({ text: text.includes('North') ? 'NORTH 3' : 'SOUTH 4' }),
    'Is it good': (_, time) => ({ text: `VERDICT ${time}` }),
  });
  server.provider.setAnswer(answer);
  const phases = server.heard('graph:driver_lifecycle');
  const agents = ['default', 'second'];
  const graphId = await server.execute([
    { node_id: 'debate', task: 'Tea or coffee?', type_id: 'debate', type_config: { agents, rounds: 1, synthesizer: 'third' } },
    { node_id: 'vote', task: 'Is it good?', type_id: 'vote', type_config: { voters: agents, verdict_format: 'yes or no' }, depends_on: ['debate'] },
    { node_id: 'refine', task: 'Write a text.', type_id: 'refine', type_config: { reviewers: agents } },
    { node_id: 'together', task: 'Plan a trip.', type_id: 'collaborate', type_config: { agents } },
    {
      node_id: 'map',
      task: 'Count birds.',
      type_id: 'map-reduce',
      type_config: { mappers: [{ agent: 'default', task_suffix: 'North' }, { agent: 'second' }], reducer: 'third' },
    },
  ]);
  const view = await server.ended(graphId);
  expect(view.status).toBe('completed');
  expect(Object.fromEntries(Object.entries(view.nodes).map(([id, { output }]) => [id, output]))).toEqual({
    debate: 'SYNTHESIS',
    vote: expect.stringMatching(/^### default\nVERDICT \d\n\n### second\nVERDICT \d$/),
    refine: 'POLISHED',
    together: '### default (round 1)\nPART 1\n\n### second (round 1)\nPART 2',
    map: 'REDUCED',
  });
  expect(asked.find((text) => text.includes('The debate below is over'))).toMatch(/<<<UNTRUSTED-TEXT.*ARGUMENT 1.*ARGUMENT 2/s);
  const ofDebate = phases.filter(({ nodeId }) => nodeId === 'debate').map(({ phase }) => phase);
  expect(ofDebate).toEqual(['initialized', 'progress', 'progress', 'progress', 'completed']);
});

test('an exhausted budget lets running nodes end and starts no more', async () => {
  const server = await start();
  const { answer } = scripted({ First: { text: 'one', usage: { input: 500, output: 10 } }, Second: { text: 'two' } });
  server.provider.setAnswer(answer);
  const nodes: Nodes = [
    { node_id: 'one', task: 'First.', agent: 'default' },
    { node_id: 'two', task: 'Second.', agent: 'default', depends_on: ['one'] },
  ];
  const graphId = await server.execute(nodes, { budget: { maxTokens: 100 } });
  expect(await server.ended(graphId)).toMatchObject({
    status: 'failed',
    cancelReason: 'budget',
    nodes: { one: { status: 'completed' }, two: { status: 'skipped', error: 'cancelled: budget' } },
  });
});

test('a timed-out graph stops running nodes; a long enough partial output counts as partially completed', async () => {
  const server = await start();
  const { answer } = scripted({
    'You take part in a debate': (_, time) => (time === 1 ? { text: 'x'.repeat(600) } : { hang: true }),
    'Wait for': { hang: true },
  });
  server.provider.setAnswer(answer);
  const graphId = await server.execute(
    [
      { node_id: 'debate', task: 'Tea?', type_id: 'debate', type_config: { agents: ['default', 'second'], rounds: 1 } },
      { node_id: 'slow', task: 'Wait for it.', agent: 'default' },
      { node_id: 'after', task: 'After.', agent: 'default', depends_on: ['slow'] },
    ],
    { timeout_ms: 60_000 },
  );
  await expect.poll(() => (server.clock.advance(1), server.provider.served())).toBe(3);
  server.clock.advance(60_000);
  expect(await server.ended(graphId)).toMatchObject({
    status: 'completed',
    cancelReason: 'timeout',
    nodes: { debate: { status: 'completed', partial: true }, slow: { status: 'failed', error: 'timeout' }, after: { status: 'skipped' } },
  });
  const { runs } = await server.client.call('subagent.list', {});
  expect(runs.length).toBe(3);
  expect(runs.every(({ status }) => status === 'completed' || status === 'failed')).toBe(true);
});

test('a timed-out node is retried, or fails', async () => {
  const server = await start();
  const { answer } = scripted({ 'Wait for': (_, time) => (time === 1 ? { hang: true } : { text: 'At last.' }) });
  server.provider.setAnswer(answer);
  const graphId = await server.execute([{ node_id: 'n', task: 'Wait for it.', agent: 'default', timeout_ms: 5000, retries: 1 }]);
  await expect.poll(() => (server.clock.advance(1), server.provider.served())).toBe(1);
  server.clock.advance(5000);
  await server.until(graphId, ({ nodes }) => nodes['n']?.attempt === 2);
  server.clock.advance(1000);
  expect(await server.ended(graphId)).toMatchObject({ status: 'completed', nodes: { n: { attempt: 2, output: 'At last.' } } });
});

test('each end of a node is announced on request', async () => {
  const server = await start();
  server.provider.setAnswer(scripted({ 'Collect facts': { text: 'FACTS' }, 'Write a report': { status: 400, error: { message: 'no' } } }).answer);
  const graphId = await server.execute(chain, { node_progress: true, variables: { TOPIC: 'tides' } });
  await server.ended(graphId);
  const { messages } = await server.client.call('inbox.list', {});
  const texts = messages.toReversed().map(({ level, text }) => `${level} ${text.replaceAll(graphId, 'ID')}`);
  expect(texts).toHaveLength(3);
  expect(texts[0]).toBe('info Graph ID: node research completed.\n\nFACTS');
  // The end of the last node and that of its graph are delivered at the same time.
  expect(texts).toContainEqual(expect.stringMatching(/^alert Graph ID: node report failed\./));
  expect(texts).toContainEqual(expect.stringMatching(/^alert Graph ID failed: 1 of 2 nodes completed, 1 failed\./));
});

test('at most a hundred graphs run at once, and eighty per owner', async () => {
  const server = await start();
  const stranger = await server.as(['rpc']);
  const gate: Nodes = [{ node_id: 'gate', task: 'Sure?', type_id: 'approval-gate' }];
  const begin = (by = server.client) => by.call('graph.execute', { nodes: gate, announceChannelType: 'gateway', announceChannelId: 'inbox' });
  const begun = await Promise.all(Array.from({ length: 80 }, () => begin()));
  await expect(begin()).rejects.toMatchObject({ code: 'rate_limited', message: '80 of your graphs are already running, which is the limit' });
  const theirs = await Promise.all(Array.from({ length: 20 }, () => begin(stranger)));
  await expect(begin(stranger)).rejects.toMatchObject({ code: 'rate_limited', message: '100 graphs are already running, which is the limit' });
  // An admin sees the graphs of all.
  const asked = async (by = server.client) => (await by.call('inbox.list', { limit: 100 })).messages.length;
  await expect.poll(async () => (server.clock.advance(1), [await asked(), await asked(stranger)])).toEqual([100, 20]);
  for (const [by, ended] of [
    [server.client, begun[0]],
    [stranger, theirs[0]],
  ] as const) {
    if (ended === undefined) throw new Error('nothing was begun');
    await by.call('graph.answer', { graphId: ended.graphId, nodeId: 'gate', answer: 'yes' });
    await server.ended(ended.graphId);
    await begin(by);
  }
}, 30_000);

test('an ended graph runs again from the node that failed, or from a named one, with the results of the others', async () => {
  const server = await start();
  const ran: string[] = [];
  let isBroken = true;
  const rule = (name: string, text: string) => (): FakeAnswer => {
    ran.push(name);
    return name === 'b' && isBroken ? { status: 400, error: { message: 'broken' } } : { text };
  };
  server.provider.setAnswer(
    scripted({ 'Task A': rule('a', 'FACTS'), 'Task B': rule('b', 'TEXT'), 'Task C': rule('c', 'DONE'), 'Task D': rule('d', 'SIDE') }).answer,
  );
  const ada = await server.as(['rpc']);
  const { graphId } = await ada.call('graph.execute', {
    nodes: [
      { node_id: 'a', task: 'Task A about ${TOPIC}.', agent: 'default' },
      { node_id: 'b', task: 'Task B from {{a.result}}.', agent: 'second', depends_on: ['a'] },
      { node_id: 'c', task: 'Task C from {{b.result}}.', agent: 'default', depends_on: ['b'] },
      { node_id: 'd', task: 'Task D.', agent: 'third', depends_on: ['a'] },
    ],
    label: 'Retried',
    variables: { TOPIC: 'tides' },
    on_failure: 'continue',
  });
  await expect(ada.call('graph.retry', { graphId })).rejects.toMatchObject({ code: 'precondition_failed' });
  const first = await server.ended(graphId);
  expect([first.nodes['b']?.status, first.nodes['d']?.output]).toEqual(['failed', 'SIDE']);
  isBroken = false;
  ran.length = 0;
  const again = await ada.call('graph.retry', { graphId });
  expect(again).toMatchObject({ nodeCount: 4, kept: 2 });
  expect(again.graphId).not.toBe(graphId);
  const second = await server.ended(again.graphId);
  expect(ran).toEqual(['b', 'c']);
  expect(second).toMatchObject({
    status: 'completed',
    label: 'Retried',
    variables: { TOPIC: 'tides' },
    nodes: { a: { output: 'FACTS' }, b: { output: 'TEXT' }, c: { output: 'DONE' }, d: { output: 'SIDE' } },
  });
  // The kept nodes cost nothing again.
  expect(second.nodes['a']?.tokens ?? 0).toBe(0);
  await expect(ada.call('graph.retry', { graphId: again.graphId })).rejects.toMatchObject({ code: 'precondition_failed' });
  await expect(ada.call('graph.retry', { graphId: again.graphId, nodeId: 'x' })).rejects.toMatchObject({ code: 'not_found' });
  ran.length = 0;
  const third = await ada.call('graph.retry', { graphId: again.graphId, nodeId: 'c' });
  await server.ended(third.graphId);
  expect([third.kept, ran]).toEqual([3, ['c']]);
  for (const other of [server.client, await server.as(['rpc'])])
    await expect(other.call('graph.retry', { graphId })).rejects.toMatchObject({ code: 'not_found' });
});
