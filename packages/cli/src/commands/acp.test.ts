import { connect, createServer, type AddressInfo } from 'node:net';
import { PassThrough, Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: { approvals: { rules: [{ tools: ['write'], action: 'ask' }] }, agents: { default: { model: 'mock/mock-fast' } } },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

type Update = acp.SessionNotification['update'];

/** Starts `gatehouse acp` and connects the protocol's own client to it. */
async function open(choose: (request: acp.RequestPermissionRequest) => string | undefined = () => 'allow', url = server.url) {
  const user = await createUser();
  const toAgent = new PassThrough();
  const fromAgent = new PassThrough();
  const running = user.run({
    args: ['acp'],
    env: { GATEHOUSE_URL: url, GATEHOUSE_TOKEN: server.token },
    io: { stdin: toAgent, stdout: fromAgent },
  });
  const updates: Update[] = [];
  const asked: acp.RequestPermissionRequest[] = [];
  const connection = acp
    .client({ name: 'test editor' })
    .onNotification('session/update', ({ params }) => void updates.push(params.update))
    .onRequest('session/request_permission', ({ params }) => {
      asked.push(params);
      const optionId = choose(params);
      return optionId === undefined ? { outcome: { outcome: 'cancelled' } } : { outcome: { outcome: 'selected', optionId } };
    })
    .connect(acp.ndJsonStream(Writable.toWeb(toAgent), Readable.toWeb(fromAgent) as ReadableStream<Uint8Array>));
  const { agent } = connection;
  const initialized = await agent.request('initialize', { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  return {
    agent,
    updates,
    asked,
    initialized,
    newSession: async () => (await agent.request('session/new', { cwd: '/', mcpServers: [] })).sessionId,
    prompt: (sessionId: string, text: string) => agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }),
    /** Texts of one kind of update, joined. */
    said: (kind: Update['sessionUpdate']) =>
      updates
        .flatMap((update) => (update.sessionUpdate === kind && 'content' in update ? [update.content] : []))
        .map((content) => (typeof content === 'object' && content !== null && 'text' in content ? content.text : ''))
        .join(''),
    async [Symbol.asyncDispose]() {
      toAgent.end();
      await running;
      await user[Symbol.asyncDispose]();
    },
  };
}

test('initializes, prompts and streams text and reasoning; a later editor loads the session', async () => {
  let sessionId: string;
  {
    await using editor = await open();
    expect(editor.initialized).toMatchObject({ protocolVersion: 1, agentInfo: { name: 'gatehouse' }, agentCapabilities: { loadSession: true } });
    sessionId = await editor.newSession();
    server.provider.queue({ reasoning: ['Hm.'], text: ['Hello ', 'editor.'] });
    expect(await editor.prompt(sessionId, 'Hi')).toEqual({ stopReason: 'end_turn' });
    expect(editor.said('agent_message_chunk')).toBe('Hello editor.');
    await expect.poll(() => editor.said('agent_thought_chunk')).toBe('Hm.');
  }
  await using later = await open();
  await later.agent.request('session/load', { sessionId, cwd: '/', mcpServers: [] });
  expect(later.updates.map(({ sessionUpdate }) => sessionUpdate)).toEqual(['user_message_chunk', 'agent_message_chunk']);
  server.provider.queue({ text: 'I remember.' });
  await later.prompt(sessionId, 'And now?');
  const { messages } = await server.client.call('session.history', { sessionKey: sessionId });
  expect(messages.map(({ content }) => content)).toEqual(['Hi', 'Hello editor.', 'And now?', 'I remember.']);
  await expect(later.agent.request('session/load', { sessionId: 'acp:none', cwd: '/', mcpServers: [] })).rejects.toMatchObject({ code: -32002 });
});

test('tool calls are updates, and approvals are permission requests: once, always, denied', async () => {
  const answers = ['allow', 'always', 'reject'];
  await using editor = await open(() => answers.shift());
  const sessionId = await editor.newSession();
  const write = (id: string) => ({ toolCalls: [{ id, name: 'write', arguments: JSON.stringify({ path: `${id}.md`, content: 'x' }) }] });
  server.provider.queue(write('c1'), write('c2'), write('c3'), { text: 'Done.' });
  expect(await editor.prompt(sessionId, 'Write three files')).toEqual({ stopReason: 'end_turn' });
  expect(editor.asked.map(({ toolCall, options }) => [toolCall.rawInput, options.map(({ kind }) => kind)])).toEqual([
    [{ path: 'c1.md', content: 'x' }, ['allow_once', 'allow_always', 'reject_once']],
    [{ path: 'c2.md', content: 'x' }, ['allow_once', 'allow_always', 'reject_once']],
    [{ path: 'c3.md', content: 'x' }, ['allow_once', 'allow_always', 'reject_once']],
  ]);
  const states = () =>
    editor.updates.flatMap((update) =>
      update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update' ? [`${update.toolCallId} ${update.status}`] : [],
    );
  await expect.poll(states).toEqual(['c1 in_progress', 'c1 completed', 'c2 in_progress', 'c2 completed', 'c3 in_progress', 'c3 failed']);
  expect((await server.client.call('config.read', { section: 'approvals' })).config).toMatchObject({
    rules: [{ tools: ['write'], match: { path: 'c2.md', content: 'x' }, exact: true, action: 'auto' }, { action: 'ask' }],
  });
});

test('cancel stops the turn', async () => {
  await using editor = await open();
  const sessionId = await editor.newSession();
  server.provider.queue({ text: ['Begun ', 'never'], breakAfter: { deltas: 1, by: 'stall' } });
  const aborted = server.provider.aborted();
  const prompted = editor.prompt(sessionId, 'Answer at length');
  await expect.poll(() => editor.said('agent_message_chunk')).toBe('Begun ');
  await editor.agent.notify('session/cancel', { sessionId });
  expect(await prompted).toEqual({ stopReason: 'cancelled' });
  await expect.poll(() => server.provider.aborted()).toBe(aborted + 1);
});

/** Forwards connections to the server; a message arrives there later than everything else. */
async function startSlowPath() {
  const { hostname, port } = new URL(server.url);
  const asked = Promise.withResolvers<void>();
  const listener = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    let forwarded = Promise.resolve();
    client.on('data', (chunk: Buffer) => {
      const isTurn = chunk.includes('POST /api/chat/stream');
      if (isTurn) asked.resolve();
      const waited = isTurn ? new Promise((resolve) => setTimeout(resolve, 250)) : undefined;
      forwarded = forwarded.then(() => waited).then(() => void upstream.write(chunk));
    });
    client.on('close', () => void forwarded.then(() => upstream.end()));
    client.on('error', () => {});
    upstream.on('error', () => client.destroy());
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    asked: asked.promise,
    [Symbol.dispose]: () => void listener.close(),
  };
}

test('cancel stops a turn that the server admits only after it', async () => {
  using slow = await startSlowPath();
  await using editor = await open(undefined, slow.url);
  const sessionId = await editor.newSession();
  server.provider.queue({ text: ['Begun ', 'never'], breakAfter: { deltas: 1, by: 'stall' } });
  const aborted = server.provider.aborted();
  const prompted = editor.prompt(sessionId, 'Answer at length');
  await slow.asked;
  await editor.agent.notify('session/cancel', { sessionId });
  expect(await prompted).toEqual({ stopReason: 'cancelled' });
  await expect.poll(() => server.provider.aborted(), { timeout: 5_000 }).toBe(aborted + 1);
  server.provider.queue({ text: 'Here.' });
  expect(await editor.prompt(sessionId, 'Still there?')).toEqual({ stopReason: 'end_turn' });
});

test('files of the editor are part of the message, and errors are returned', async () => {
  await using editor = await open();
  const sessionId = await editor.newSession();
  server.provider.queue({ text: 'A list.' });
  await editor.agent.request('session/prompt', {
    sessionId,
    prompt: [
      { type: 'text', text: 'What is in ' },
      { type: 'resource', resource: { uri: 'file:///notes.md', text: 'milk ```x```', mimeType: 'text/markdown' } },
      { type: 'resource_link', name: 'other.md', uri: 'file:///other.md' },
    ],
  });
  const { messages } = await server.client.call('session.history', { sessionKey: sessionId });
  expect(messages[0]?.content).toBe('What is in \n\nfile:///notes.md:\n\n````\nmilk ```x```\n````\n\n[other.md](file:///other.md)');
  server.provider.queue({ status: 400, error: { message: 'Nonsense' } });
  await expect(editor.prompt(sessionId, 'Fail')).rejects.toMatchObject({ code: -32603 });
  await expect(editor.prompt('acp:unknown', 'Hi')).rejects.toMatchObject({ code: -32002 });
  await expect(editor.agent.request('session/nothing', {})).rejects.toMatchObject({ code: -32601 });
});
