import { afterEach, expect, test } from 'vitest';
import { type GraphServer, openGraphs, type Nodes, scripted } from '../testing/open-graphs.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function start(options: Parameters<typeof openGraphs>[0] = {}): Promise<GraphServer> {
  const server = await openGraphs(options);
  open.push(server);
  return server;
}

const hanging: Nodes = [{ node_id: 'one', task: 'Hang.', agent: 'default' }];
const failure = (work: Promise<unknown>) =>
  work.then(
    () => 'no failure',
    (error: { code: string; message: string }) => `${error.code} ${error.message}`,
  );

test('a label refers to a started graph of the caller, not to a loaded one or that of a stranger', async () => {
  const server = await start();
  server.provider.setAnswer(scripted({ Hang: { hang: true } }).answer);
  const { call } = server.client;
  const graphId = await server.execute(hanging, { label: 'Nightly' });
  const { id } = await call('graph.save', { label: 'Nightly', nodes: hanging });
  await call('graph.load', { id });
  expect(await call('graph.status', { graphId: 'Nightly' })).toMatchObject({ graphId });
  const stranger = await server.as(['rpc']);
  const theirs = await stranger.call('graph.execute', { nodes: hanging, label: 'Nightly' });
  const onlyTheirs = await stranger.call('graph.execute', { nodes: hanging, label: 'Theirs' });
  // An admin sees it by its id; a label, which anyone may choose, never refers to a foreign graph.
  expect(await call('graph.status', { graphId: theirs.graphId })).toMatchObject({ graphId: theirs.graphId });
  expect(await call('graph.cancel', { graphId: 'Nightly' })).toEqual({ cancelled: true, graphId });
  expect(await failure(call('graph.cancel', { graphId: 'Theirs' }))).toBe('not_found Graph not found');
  expect((await server.view(onlyTheirs.graphId)).cancelReason).toBeUndefined();
});

test('a loaded graph is started only once by concurrent calls, and cannot be deleted as a run', async () => {
  const server = await start();
  server.provider.setAnswer(() => ({ text: 'DONE' }));
  const { call } = server.client;
  const { id } = await call('graph.save', { label: 'Once', nodes: [{ node_id: 'a', task: 'Do ${X}.', agent: 'default' }] });
  const { graphId } = await call('graph.load', { id });
  expect(await failure(call('graph.deleteRun', { graphId }))).toBe('not_found Graph not found');
  const outcomes = await Promise.all(['1', '2', '3'].map((X) => failure(call('graph.execute', { graphId, variables: { X } }))));
  expect(outcomes.toSorted()).toEqual(['no failure', ...Array.from({ length: 2 }, () => 'precondition_failed The graph was already started')]);
  expect(await server.ended(graphId)).toMatchObject({ status: 'completed' });
  expect(server.provider.served()).toBe(1);
});

test('a token bound to agents reaches no saved graph of another agent, and not the default agent by omitting the name', async () => {
  const server = await start();
  const wide = await server.as(['rpc']);
  const nodes: Nodes = [{ node_id: 'a', task: 'x', agent: 'third' }];
  const { id } = await server.client.call('graph.save', { label: 'Third', nodes, agentId: 'third' });
  const bound = await server.as(['*'], { agents: ['second'] });
  for (const work of [
    bound.call('graph.load', { id }),
    bound.call('graph.delete', { id }),
    bound.call('graph.save', { id, label: 'Mine', nodes: [{ node_id: 'a', task: 'x', agent: 'second' }] }),
    wide.call('graph.load', { id }),
  ])
    expect(await failure(work)).toBe('not_found Saved graph not found');
  expect(await bound.call('graph.list', {})).toMatchObject({ entries: [], total: 0 });
  expect(await bound.call('graph.list', { offset: 5 })).toMatchObject({ entries: [], total: 0 });
  await expect(
    bound.call('graph.execute', {
      nodes: [
        { node_id: 'a', task: 'x', agent: 'second' },
        { node_id: 'b', task: 'x' },
      ],
    }),
  ).rejects.toMatchObject({ code: 'invalid_params', issues: [{ path: 'nodes.1.agent', message: 'Agent not found: default' }] });
});

test('a gate stays pending until an answer is clear', async () => {
  const server = await start();
  const gate: Nodes = [{ node_id: 'gate', task: 'Sure?', type_id: 'approval-gate' }];
  const graphId = await server.execute(gate, { announceChannelType: 'gateway', announceChannelId: 'inbox' });
  const asks = ({ nodes }: Awaited<ReturnType<GraphServer['view']>>) => nodes['gate']?.waitsForAnswer === true;
  await server.until(graphId, asks);
  for (const answer of ['yes, once legal has signed it', 'approve?', '👍', 'да'])
    expect(await failure(server.client.call('graph.answer', { graphId, nodeId: 'gate', answer }))).toMatch(/^precondition_failed The answer neither/);
  expect(asks(await server.view(graphId))).toBe(true);
  expect(await server.client.call('graph.answer', { graphId, nodeId: 'gate', answer: 'I cannot approve this' })).toMatchObject({ approved: false });
  expect(await server.ended(graphId)).toMatchObject({ status: 'failed', nodes: { gate: { error: 'Refused: I cannot approve this' } } });
});

test('a gate explains how to answer it, even after a long question', async () => {
  const server = await start();
  server.provider.setAnswer(() => ({ text: '😀'.repeat(6000) }));
  const graphId = await server.execute(
    [
      { node_id: 'long', task: 'Write much.', agent: 'default' },
      { node_id: 'gate', task: 'Publish? {{long.result}} {{long.result}} {{long.result}}', type_id: 'approval-gate', depends_on: ['long'] },
    ],
    { announceChannelType: 'gateway', announceChannelId: 'inbox' },
  );
  await server.until(graphId, ({ nodes }) => nodes['gate']?.waitsForAnswer === true);
  const [asked] = (await server.client.call('inbox.list', {})).messages;
  expect(asked?.text).toMatch(/Publish\?[\s\S]*This is the beginning[\s\S]*Answer with graph\.answer/);
  expect(asked?.text.isWellFormed()).toBe(true);
});

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
}

test('loaded and listed graphs may come from anyone: they are fenced for the agent and for the agents of the graph', async () => {
  const server = await start({ config: { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } } } });
  const nodes: Nodes = [
    { node_id: 'a', task: 'Sly task.', type_id: 'vote', type_config: { voters: ['second', 'third'], prompt_suffix: 'SLY SUFFIX' } },
  ];
  const { id } = await server.client.call('graph.save', { label: 'SLY LABEL', nodes, agentId: 'default' });
  const asked: string[] = [];
  const results: string[] = [];
  let graphId = '';
  server.provider.setAnswer(({ body }) => {
    const { messages } = body as Asked;
    const text = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content);
    // The conversation is notified of the end too, perhaps before both voters were counted.
    if (text.includes('was started for this conversation')) return { text: 'Noted.' };
    if (!/Make it|Run it/.test(text)) return (asked.push(text), { text: 'PART' });
    const last = messages.at(-1);
    const isTold = last?.role === 'tool';
    if (isTold) results.push(String(last.content));
    graphId = /gr_[0-9a-f-]{36}/.exec(results.at(-1) ?? '')?.[0] ?? graphId;
    const steps = text.includes('Make it') ? [{ action: 'list' }, { action: 'load', id }] : [{ action: 'execute', graphId }];
    const step = steps[messages.slice(messages.findLastIndex(({ role }) => role === 'user')).filter(({ role }) => role === 'tool').length];
    return step === undefined ? { text: 'Done.' } : { toolCalls: [{ id: `c${results.length}`, name: 'pipeline', arguments: JSON.stringify(step) }] };
  });
  await server.client.call('agent.execute', { message: 'Make it', sessionKey: 'a:b' });
  expect(results[0]).toMatch(/^<<<UNTRUSTED-TEXT [0-9a-f]{32} source="sub-agent">>>[\s\S]*SLY LABEL/);
  expect(results[1]).toMatch(/^<<<UNTRUSTED-TEXT/);
  // A conversation that has read none of it.
  await server.client.call('agent.execute', { message: 'Run it', sessionKey: 'c:d' });
  expect(results[2]).toMatch(/^<<<UNTRUSTED-TEXT [0-9a-f]{32} source="sub-agent">>>[\s\S]*SLY LABEL/);
  await expect.poll(() => (server.clock.advance(1), asked.length)).toBe(2);
  for (const text of asked)
    for (const phrase of ['Sly task', 'SLY SUFFIX']) expect(text).toMatch(new RegExp(`<<<UNTRUSTED-TEXT [^>]*>>>\\\\n${phrase}[^<]*\\\\n<<<END`));
});
