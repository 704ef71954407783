import { createClient } from '@gatehouse/client';
import { afterEach, expect, test } from 'vitest';
import { conversationRef } from '../../../../conversations/sessions/conversation.ts';
import { type GraphServer, openGraphs, type Nodes, scripted } from '../../testing/open-graphs.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function start(options: Parameters<typeof openGraphs>[0] = {}): Promise<GraphServer> {
  const server = await openGraphs(options);
  open.push(server);
  return server;
}

const toInbox = { announceChannelType: 'gateway', announceChannelId: 'inbox' } as const;
const asking: Nodes = [
  { node_id: 'draft', task: 'Write a draft.', agent: 'default' },
  { node_id: 'gate', task: 'Publish {{draft.result}}?', type_id: 'approval-gate', depends_on: ['draft'] },
  { node_id: 'publish', task: 'Publish it.', agent: 'default', depends_on: ['gate'] },
];
const rules = { 'Write a draft': { text: 'DRAFT' }, 'Publish it': { text: 'PUBLISHED' } };
const asks = (view: { nodes: Record<string, { waitsForAnswer?: boolean | undefined }> }) => view.nodes['gate']?.waitsForAnswer === true;

test('a gate asks at once, reminds at half time, and continues when the owner of the graph approves', async () => {
  const server = await start();
  server.provider.setAnswer(scripted(rules).answer);
  const graphId = await server.execute(asking, { ...toInbox, label: 'News' });
  await server.until(graphId, asks);
  const inbox = async () => (await server.client.call('inbox.list', {})).messages.toReversed();
  expect(await inbox()).toMatchObject([
    {
      source: 'graph',
      level: 'alert',
      text: expect.stringMatching(/"News".*asks for an approval \(node gate\).*Publish\s+DRAFT\s+\?.*graph\.answer/s),
    },
  ]);
  expect((await inbox())[0]?.asks).toEqual({ graphId, nodeId: 'gate' });
  const gate = async () => (await server.view(graphId)).nodes['gate'];
  expect((await gate())?.question).toMatch(/^Publish\s+DRAFT\s+\?$/);
  const listed = async () => [
    (await server.client.call('graph.runs', {})).runs,
    ((await server.client.call('graph.status', {})) as { graphs: object[] }).graphs,
  ];
  const pending = { status: 'running', waitsForAnswer: true, mayAnswer: true };
  expect(await listed()).toMatchObject([[pending], [pending]]);
  server.clock.advance(31 * 60_000);
  await expect.poll(async () => (await inbox()).length).toBe(2);
  expect((await inbox())[1]).toMatchObject({ text: expect.stringContaining('is still waiting for an approval'), asks: { graphId, nodeId: 'gate' } });
  const answer = (text: string) => server.client.call('graph.answer', { graphId: 'News', nodeId: 'gate', answer: text });
  await expect(answer('perhaps')).rejects.toMatchObject({
    code: 'precondition_failed',
    message: expect.stringContaining('neither approves nor refuses'),
  });
  await expect(server.client.call('graph.answer', { graphId, nodeId: 'draft', answer: 'yes' })).rejects.toMatchObject({ code: 'not_found' });
  expect(await answer('Yes, go ahead')).toEqual({ graphId, nodeId: 'gate', approved: true });
  await expect(answer('no')).rejects.toMatchObject({ code: 'precondition_failed' });
  expect(await server.ended(graphId)).toMatchObject({
    status: 'completed',
    nodes: { gate: { status: 'completed', output: 'Approved: Yes, go ahead' }, publish: { output: 'PUBLISHED' } },
  });
  expect(await gate()).not.toHaveProperty('question');
  for (const [row] of await listed()) expect(row).not.toHaveProperty('waitsForAnswer');
  expect((await inbox()).at(-1)).not.toHaveProperty('asks');
  const { rows } = await server.client.call('obs.audit.query', { actionType: 'graph.answer' });
  expect(rows).toMatchObject([{ outcome: 'success' }]);
});

test('a narrower token decides a gate of a wider one, but its text reaches no agent', async () => {
  const server = await start();
  server.provider.setAnswer(scripted(rules).answer);
  const callOf = async (id: string, limit: { readonly agents?: string[] } = {}) =>
    createClient({ url: server.url, token: (await server.client.call('tokens.create', { id, person: 'ada', scopes: ['rpc'], ...limit })).secret })
      .call;
  const wide = await callOf('wide');
  const narrow = await callOf('narrow', { agents: ['default', 'second'] });
  for (const [call, error] of [
    [narrow, 'Refused: no'],
    [wide, 'Refused: no, ask agent third'],
  ] as const) {
    const { graphId } = await wide('graph.execute', { ...toInbox, nodes: asking });
    await server.until(graphId, asks);
    await call('graph.answer', { graphId, nodeId: 'gate', answer: 'no, ask agent third' });
    expect(await server.ended(graphId)).toMatchObject({ nodes: { gate: { status: 'failed', error } } });
  }
});

test('a refusal outweighs approving terms, and fails the gate', async () => {
  const server = await start();
  server.provider.setAnswer(scripted(rules).answer);
  const graphId = await server.execute(asking, toInbox);
  await server.until(graphId, asks);
  expect(await server.client.call('graph.answer', { graphId, nodeId: 'gate', answer: "no, don't do it" })).toMatchObject({ approved: false });
  expect(await server.ended(graphId)).toMatchObject({
    status: 'failed',
    nodes: { gate: { status: 'failed', error: "Refused: no, don't do it" }, publish: { status: 'skipped' } },
  });
});

test('without an answer the gate fails, regardless of the timeout of the graph', async () => {
  const server = await start();
  server.provider.setAnswer(scripted(rules).answer);
  const graphId = await server.execute(asking, toInbox);
  await server.until(graphId, asks);
  server.clock.advance(59 * 60_000);
  expect((await server.view(graphId)).nodes['gate']?.status).toBe('running');
  server.clock.advance(60_000);
  expect(await server.ended(graphId)).toMatchObject({ nodes: { gate: { status: 'failed', error: 'timeout: nobody answered in time' } } });
  await expect(server.client.call('graph.answer', { graphId, nodeId: 'gate', answer: 'yes' })).rejects.toMatchObject({ code: 'precondition_failed' });
});

test('a cancelled graph starts nothing more: running nodes end, pending gates are released', async () => {
  const server = await start();
  const answered = Promise.withResolvers<void>();
  const { answer } = scripted({ 'Take long': { text: 'LONG', after: answered.promise }, After: { text: 'never' } });
  server.provider.setAnswer(answer);
  const graphId = await server.execute(
    [
      { node_id: 'long', task: 'Take long.', agent: 'default' },
      { node_id: 'after', task: 'After.', agent: 'default', depends_on: ['long'] },
      { node_id: 'gate', task: 'Sure?', type_id: 'approval-gate' },
    ],
    { ...toInbox, label: 'slow' },
  );
  await expect.poll(() => (server.clock.advance(1), server.provider.served())).toBe(1);
  await server.until(graphId, asks);
  expect(await server.client.call('graph.cancel', { graphId: 'slow' })).toEqual({ cancelled: true, graphId });
  await expect(server.client.call('graph.cancel', { graphId })).rejects.toMatchObject({ code: 'precondition_failed' });
  answered.resolve();
  expect(await server.ended(graphId)).toMatchObject({
    status: 'cancelled',
    cancelReason: 'manual',
    nodes: { long: { status: 'completed', output: 'LONG' }, after: { status: 'skipped' }, gate: { status: 'skipped' } },
  });
  expect(server.provider.served()).toBe(1);
  await expect(server.client.call('graph.cancel', { graphId })).rejects.toMatchObject({
    code: 'precondition_failed',
    message: expect.stringContaining('cancelled'),
  });
  await expect(server.client.call('graph.cancel', { graphId: 'gr_00000000-0000-7000-8000-000000000009' })).rejects.toMatchObject({
    code: 'not_found',
  });
});

test('run.kill ends a graph and its runs at once, with one correct end and one announcement', async () => {
  const server = await start();
  server.provider.setAnswer(scripted({ Hang: { hang: true } }).answer);
  const completed = server.heard('graph:completed');
  const graphId = await server.execute([
    { node_id: 'one', task: 'Hang.', agent: 'default' },
    { node_id: 'two', task: 'Hang too.', agent: 'default', depends_on: ['one'] },
  ]);
  await expect.poll(() => (server.clock.advance(1), server.provider.served())).toBe(1);
  const { rootRunId = '' } = await server.view(graphId);
  expect((await server.client.call('run.kill', { rootRunId })).killed).toBeGreaterThanOrEqual(2);
  expect(await server.view(graphId)).toMatchObject({
    status: 'cancelled',
    isTerminal: true,
    cancelReason: 'killed',
    nodes: { one: { status: 'failed' }, two: { status: 'skipped' } },
  });
  await expect.poll(() => server.provider.aborted()).toBe(1);
  expect(completed).toMatchObject([{ graphId, status: 'cancelled', cancelReason: 'killed', nodesFailed: 1, nodesSkipped: 1 }]);
  const { messages } = await server.client.call('inbox.list', {});
  expect(messages.filter(({ source }) => source === 'graph')).toHaveLength(1);
  const { runs } = await server.client.call('run.list', {});
  expect(runs).toMatchObject([{ rootRunId, state: 'revoked' }]);
});

test('with revoked leases running nodes end, and nothing more starts', async () => {
  const server = await start();
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(scripted({ 'Take long': { text: 'LONG', after: answered.promise } }).answer);
  const graphId = await server.execute([
    { node_id: 'one', task: 'Take long.', agent: 'default' },
    { node_id: 'two', task: 'Then.', agent: 'default', depends_on: ['one'] },
  ]);
  await expect.poll(() => (server.clock.advance(1), server.provider.served())).toBe(1);
  const { rootRunId = '' } = await server.view(graphId);
  await server.client.call('lease.revoke', { rootRunId });
  answered.resolve();
  expect(await server.ended(graphId)).toMatchObject({ status: 'cancelled', cancelReason: 'killed', nodes: { two: { status: 'skipped' } } });
  expect(server.provider.served()).toBe(1);
});

test('foreign graphs look like unknown ones; admins see them, but cannot answer their gates', async () => {
  const server = await start();
  server.provider.setAnswer(scripted(rules).answer);
  const [mine, other] = [await server.as(['rpc']), await server.as(['rpc'])];
  const { graphId } = await mine.call('graph.execute', { nodes: asking, ...toInbox, label: 'private' });
  await server.until(graphId, asks);
  const rowOf = async (client: Pick<typeof mine, 'call'>) => (await client.call('graph.runs', {})).runs[0];
  expect([(await rowOf(mine))?.mayAnswer, await rowOf(server.client)]).toMatchObject([true, { waitsForAnswer: true }]);
  expect(await rowOf(server.client)).not.toHaveProperty('mayAnswer');
  // What a run does is content, which only admins see in the list of all runs.
  expect((await mine.call('run.list', {})).runs[0]).not.toHaveProperty('task');
  expect((await server.client.call('run.list', {})).runs[0]).toMatchObject({ task: 'private' });
  const saved = await mine.call('graph.save', { label: 'mine', nodes: asking });
  const unknown = 'gr_00000000-0000-7000-8000-000000000009';
  const failure = async (run: () => Promise<unknown>) =>
    run().then(
      () => 'no failure',
      (error: { code: string; message: string }) => `${error.code} ${error.message}`,
    );
  for (const call of [
    (id: string) => other.call('graph.status', { graphId: id }),
    (id: string) => other.call('graph.outputs', { graphId: id }),
    (id: string) => other.call('graph.cancel', { graphId: id }),
    (id: string) => other.call('graph.answer', { graphId: id, nodeId: 'gate', answer: 'yes' }),
    (id: string) => other.call('graph.runDetail', { graphId: id }),
    (id: string) => other.call('graph.deleteRun', { graphId: id }),
  ]) {
    expect(await failure(() => call(graphId))).toBe('not_found Graph not found');
    expect(await failure(() => call(unknown))).toBe('not_found Graph not found');
  }
  expect(await failure(() => other.call('graph.status', { graphId: 'private' }))).toBe('not_found Graph not found');
  for (const method of ['graph.load', 'graph.delete'] as const)
    expect(await failure(() => other.call(method, { id: saved.id }))).toBe('not_found Saved graph not found');
  expect(await other.call('graph.status', {})).toMatchObject({ graphs: [] });
  expect(await other.call('graph.runs', {})).toMatchObject({ runs: [], total: 0 });
  expect(await other.call('graph.list', {})).toMatchObject({ entries: [], total: 0 });
  expect((await server.client.call('graph.status', { graphId })) as unknown).toMatchObject({ graphId });
  await expect(server.client.call('graph.answer', { graphId, nodeId: 'gate', answer: 'yes' })).rejects.toMatchObject({ code: 'denied' });
  expect(await mine.call('graph.answer', { graphId, nodeId: 'gate', answer: 'yes' })).toMatchObject({ approved: true });
  expect(await server.ended(graphId)).toMatchObject({ status: 'completed' });
  expect((await mine.call('inbox.list', {})).messages.length).toBe(2);
  expect((await other.call('inbox.list', {})).messages).toEqual([]);
});

test('a token reaches only its own agents', async () => {
  const server = await start();
  const bound = await server.as(['rpc'], { agents: ['second'] });
  await expect(bound.call('graph.execute', { nodes: [{ node_id: 'a', task: 'x', agent: 'third' }] })).rejects.toMatchObject({
    code: 'invalid_params',
    issues: [{ path: 'nodes.0.agent', message: 'Agent not found: third' }],
  });
  await expect(bound.call('graph.execute', { nodes: [{ node_id: 'a', task: 'x' }] })).rejects.toMatchObject({
    code: 'invalid_params',
    issues: [{ path: 'nodes.0.agent', message: 'Agent not found: default' }],
  });
});

test('graphs are saved, replaced, listed, loaded, started once by the fresh id, and deleted', async () => {
  const server = await start();
  server.provider.setAnswer(scripted(rules).answer);
  const { call } = server.client;
  const nodes: Nodes = [{ node_id: 'draft', task: 'Write a draft.', agent: 'default' }];
  const { id } = await call('graph.save', { label: 'First', nodes });
  const other = await call('graph.save', { label: 'Another', nodes, settings: { on_failure: 'continue', budget: { maxTokens: 5 } } });
  expect((await call('graph.load', { id: other.id })).settings).toEqual({ on_failure: 'continue', budget: { maxTokens: 5 } });
  expect(await call('graph.save', { id, label: 'Second', nodes: [...nodes, { node_id: 'b', task: 'B ${X}', depends_on: ['draft'] }] })).toMatchObject(
    {
      id,
      warnings: [{ nodeId: 'b', type: 'no_agent_id' }],
    },
  );
  await expect(call('graph.save', { label: 'bad', nodes: [{ node_id: 'a', task: 'x', depends_on: ['a'] }] })).rejects.toMatchObject({
    code: 'invalid_params',
  });
  await expect(call('graph.save', { id: 'sg_00000000-0000-7000-8000-000000000009', label: 'x', nodes })).rejects.toMatchObject({ code: 'not_found' });
  const list = await call('graph.list', { limit: 1 });
  expect(list).toMatchObject({ entries: [{ name: 'Another', nodeCount: 1 }], total: 2, hasMore: true });
  expect((await call('graph.list', { offset: 1 })).entries).toMatchObject([{ id, label: 'Second', nodeCount: 2 }]);
  const loaded = await call('graph.load', { id });
  expect(loaded).toMatchObject({ id, label: 'Second', settings: {}, nodes: [{ node_id: 'draft' }, { node_id: 'b' }] });
  expect(await call('graph.status', { graphId: loaded.graphId })).toMatchObject({ status: 'pending', isTerminal: false, stats: { pending: 2 } });
  expect((await call('graph.runs', {})).total).toBe(0);
  const started = await call('graph.execute', { graphId: loaded.graphId });
  expect(started).toMatchObject({ graphId: loaded.graphId, label: 'Second', warnings: [{ type: 'unresolved_variable' }, { type: 'no_agent_id' }] });
  await expect(call('graph.execute', { graphId: loaded.graphId })).rejects.toMatchObject({ code: 'precondition_failed' });
  expect(await server.ended(loaded.graphId)).toMatchObject({ status: 'completed' });
  const stale = await call('graph.load', { id });
  server.clock.advance(25 * 3_600_000);
  await expect
    .poll(async () =>
      call('graph.execute', { graphId: stale.graphId }).then(
        () => 'started',
        ({ code }: { code: string }) => code,
      ),
    )
    .toBe('not_found');
  expect(await call('graph.delete', { id })).toEqual({ id, deleted: true });
  await expect(call('graph.load', { id })).rejects.toMatchObject({ code: 'not_found' });
});

test('the end of a graph is announced in the named conversation, by a turn of its agent, fenced', async () => {
  const server = await start();
  const announced: string[] = [];
  server.provider.setAnswer((request) => {
    const text = JSON.stringify(request.body);
    if (text.includes('has ended')) announced.push(text);
    return { text: text.includes('has ended') ? 'The graph is done.' : 'RESULT' };
  });
  const { conversationRef: ref } = await server.client.call('agent.execute', { message: 'Hello', sessionKey: 'desk:gateway' });
  const graphId = await server.execute([{ node_id: 'n', task: 'Do it.', agent: 'second' }], {
    announceChannelType: 'gateway',
    announceChannelId: ref,
  });
  await server.ended(graphId);
  await expect.poll(() => (server.clock.advance(1), announced.length)).toBe(1);
  expect(announced[0]).toMatch(/UNTRUSTED-TEXT.*RESULT/s);
  const history = async () => (await server.client.call('session.history', { conversationRef: ref })).messages;
  await expect.poll(async () => (await history()).at(-1)?.content).toBe('The graph is done.');
  expect(await history()).toHaveLength(4);
  expect((await server.client.call('inbox.list', {})).messages).toEqual([]);
});

test('when the conversation is gone at the end of the graph, its owner is notified instead', async () => {
  const server = await start();
  const { conversationRef: ref } = await server.client.call('agent.execute', { message: 'Hello', sessionKey: 'desk:gateway' });
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'RESULT', after: answered.promise }));
  expect(ref).toBe(conversationRef('default', 'token:root', { userId: 'desk', channelId: 'gateway' }));
  const graphId = await server.execute([{ node_id: 'n', task: 'Do it.', agent: 'second' }], {
    announceChannelType: 'gateway',
    announceChannelId: ref,
  });
  await server.client.call('session.delete', { conversationRef: ref });
  answered.resolve();
  await server.ended(graphId);
  await expect.poll(async () => (server.clock.advance(1), (await server.client.call('inbox.list', {})).messages.length)).toBe(1);
  expect(server.provider.served()).toBe(2);
});

test('a conversation that is deleted while an announcement waits for it is not recreated', async () => {
  const server = await start();
  server.provider.setAnswer(({ body }) => (JSON.stringify(body).includes('Keep busy') ? { hang: true } : { text: 'RESULT' }));
  const { conversationRef: ref } = await server.client.call('agent.execute', { message: 'Hello', sessionKey: 'desk:gateway' });
  const busy = server.client.call('agent.execute', { message: 'Keep busy', sessionKey: 'desk:gateway' });
  await expect.poll(() => server.provider.served()).toBe(2);
  const graphId = await server.execute([{ node_id: 'n', task: 'Do it.', agent: 'second' }], {
    announceChannelType: 'gateway',
    announceChannelId: ref,
  });
  const deleting = server.client.call('session.delete', { conversationRef: ref });
  await server.ended(graphId);
  expect(await busy).toMatchObject({ finishReason: 'aborted', failure: { message: 'The conversation was deleted' } });
  await deleting;
  await expect.poll(async () => (server.clock.advance(1), (await server.client.call('inbox.list', {})).messages.length)).toBe(1);
  await expect(server.client.call('session.history', { conversationRef: ref })).rejects.toMatchObject({ code: 'not_found' });
  expect(server.provider.served()).toBe(3);
});

test('when the model refuses the announcement, the owner is notified once after several attempts', async () => {
  const server = await start();
  server.provider.setAnswer(({ body }) =>
    JSON.stringify(body).includes('has ended') ? { status: 400, error: { message: 'no' } } : { text: 'RESULT' },
  );
  const { conversationRef: ref } = await server.client.call('agent.execute', { message: 'Hello', sessionKey: 'desk:gateway' });
  const graphId = await server.execute([{ node_id: 'n', task: 'Do it.', agent: 'second' }], {
    announceChannelType: 'gateway',
    announceChannelId: ref,
  });
  await server.ended(graphId);
  const inbox = async () => (await server.client.call('inbox.list', {})).messages;
  await expect.poll(async () => (server.clock.advance(5_000), (await inbox()).length)).toBe(1);
  expect(await inbox()).toMatchObject([{ source: 'graph', text: expect.stringContaining('RESULT') }]);
  expect((await server.client.call('session.history', { conversationRef: ref })).messages).toHaveLength(2);
});

test('a failed graph is announced by a message that names the conversation, without a model call', async () => {
  const server = await start();
  server.provider.setAnswer(({ body }) => (JSON.stringify(body).includes('Do it') ? { status: 400, error: { message: 'no' } } : { text: 'Hello.' }));
  const { conversationRef: ref } = await server.client.call('agent.execute', { message: 'Hello', sessionKey: 'desk:gateway' });
  const graphId = await server.execute([{ node_id: 'n', task: 'Do it.', agent: 'second' }], {
    announceChannelType: 'gateway',
    announceChannelId: ref,
  });
  expect((await server.ended(graphId)).status).toBe('failed');
  expect((await server.client.call('inbox.list', {})).messages).toMatchObject([{ source: 'graph', level: 'alert', conversationRef: ref }]);
  expect(server.provider.served()).toBe(2);
});
