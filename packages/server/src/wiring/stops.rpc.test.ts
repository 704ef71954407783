import { createStepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { findCommand } from '../../../../tools/system-packages.mjs';
import type { Tool, ToolContext } from '../runtime/tool.ts';

/** Calls of `work`, each of which runs until it is stopped. */
const calls: ToolContext[] = [];
const work: Tool = {
  name: 'mcp__t--work',
  description: 'Works until it is stopped.',
  args: z.looseObject({}),
  risk: 'read',
  effect: 'idempotent',
  timeoutMs: 60_000,
  source: 'test',
  async run(_args, context) {
    calls.push(context);
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve, { once: true }));
    return { content: 'stopped' };
  },
};

const options: TestServerOptions = {
  tools: [work],
  config: {
    agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } }, spare: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
    approvals: { rules: [{ tools: ['mcp__t--work', 'exec', 'sessions_spawn'], action: 'auto', tainted: true }] },
  },
};
const callWork = () => ({ toolCalls: [{ id: `call_${crypto.randomUUID()}`, name: work.name, arguments: '{}' }] });
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer(options);
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => {
  calls.length = 0;
  server.provider.setAnswer(callWork);
});

const atWork = (count = 1) => expect.poll(() => calls.length).toBe(count);
const asked = () => server.provider.requests.length;

/** Every route that runs a turn, as its client sees it: `refusal` is what a caller reads whose token is revoked meanwhile. */
const post = async (path: string, token: string, body: object, headers: Record<string, string> = {}, { url } = server) => {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return `${response.status} ${await response.text()}`;
};
const chat = { model: 'agent/default', messages: [{ role: 'user', content: 'Work' }] };
const execute = { jsonrpc: '2.0', id: 1, method: 'agent.execute', params: { message: 'Work' } };
const routes: Readonly<Record<string, { readonly send: (token: string) => Promise<string>; readonly refusal: RegExp }>> = {
  'POST /rpc': { send: (token) => post('/rpc', token, execute), refusal: /^200 .*"error":.*unauthenticated/ },
  'GET /ws': {
    async send(token) {
      using socket = server.socket(token);
      return await socket.call('agent.execute', { message: 'Work' }).then(JSON.stringify, (error: unknown) => JSON.stringify(error));
    },
    refusal: /unauthenticated/,
  },
  'POST /v1/chat/completions': { send: (token) => post('/v1/chat/completions', token, chat), refusal: /^401 .*authentication_error/ },
  'POST /v1/chat/completions (stream)': {
    send: (token) => post('/v1/chat/completions', token, { ...chat, stream: true }),
    refusal: /authentication_error/,
  },
  'POST /v1/responses': {
    send: (token) => post('/v1/responses', token, { model: 'agent/default', input: 'Work' }),
    refusal: /^401 .*authentication_error/,
  },
  'POST /v1/responses (stream)': {
    send: (token) => post('/v1/responses', token, { model: 'agent/default', input: 'Work', stream: true }),
    refusal: /authentication_error|revoked/,
  },
  'POST /api/chat': { send: (token) => post('/api/chat', token, { message: 'Work' }), refusal: /^401 .*unauthenticated/ },
  'POST /api/chat (Idempotency-Key)': {
    send: (token) => post('/api/chat', token, { message: 'Work' }, { 'idempotency-key': crypto.randomUUID() }),
    refusal: /^401 .*unauthenticated/,
  },
  'POST /api/chat/stream': { send: (token) => post('/api/chat/stream', token, { message: 'Work' }), refusal: /unauthenticated/ },
  'POST /mcp': {
    async send(token) {
      const client = new Client({ name: 'test', version: '1' });
      await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { authProvider: { token: async () => token } }));
      const answer = await client.callTool({ name: 'agent_default', arguments: { message: 'Work' } }).then(JSON.stringify, String);
      await client.close();
      return answer;
    },
    refusal: /unauthenticated/,
  },
};

describe('tokens.revoke', () => {
  test.each(Object.keys(routes))('%s: the turn ends, no model or tool is called any more, and its caller gets an error', async (name) => {
    const { send, refusal } = routes[name] ?? expect.unreachable();
    const holder = await server.as(['*']);
    const answer = send(holder.token).catch(String);
    await atWork();
    const before = asked();
    await server.client.call('tokens.revoke', { id: holder.tokenId });
    expect(calls[0]?.signal.aborted).toBe(true);
    expect(await answer).toMatch(refusal);
    expect([asked(), calls.length]).toEqual([before, 1]);
  });

  test('ends work waiting for its lane, and keeps that of others', async () => {
    const holder = await server.as(['rpc']);
    const sessionKey = `lane-${holder.tokenId}:x`;
    server.provider.queue({ text: 'Ready.' });
    await server.client.call('agent.execute', { message: 'Begin', sessionKey });
    const turns = [1, 2].map(() => post('/rpc', holder.token, { ...execute, params: { message: 'Work', sessionKey } }));
    const others = server.client.call('agent.execute', { message: 'Work', sessionKey });
    await atWork(2);
    await server.client.call('tokens.revoke', { id: holder.tokenId });
    for (const turn of turns) expect(await turn).toMatch(/unauthenticated/);
    expect(calls.filter(({ signal }) => signal.aborted)).toHaveLength(1);
    const ref = calls.find(({ signal }) => !signal.aborted)?.conversationRef;
    await server.client.call('session.delete', { conversationRef: ref });
    expect(await others).toMatchObject({ finishReason: 'aborted', failure: { message: 'The conversation was deleted' } });
  });

  test('an expired token likewise', async () => {
    const clock = createStepClock();
    await using own = await startTestServer({ ...options, clock });
    own.provider.setAnswer(callWork);
    const brief = await own.client.call('tokens.create', { scopes: ['rpc'], expiresAt: clock.now() + 60_000 });
    const expiring = post('/rpc', brief.secret, execute, {}, own);
    await atWork();
    clock.advance(60_001);
    expect(await expiring).toMatch(/unauthenticated/);
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true]);
  });

  test('a rotated token continues', async () => {
    const rotated = await server.as(['rpc', 'api']);
    const turn = post('/rpc', rotated.token, execute);
    const stream = post('/v1/chat/completions', rotated.token, { ...chat, stream: true });
    await atWork(2);
    await server.client.call('tokens.rotate', { id: rotated.tokenId });
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([false, false]);
    await server.client.call('agents.suspend', { agentId: 'default' });
    await server.client.call('agents.resume', { agentId: 'default' });
    expect(await turn).toContain('Agent is suspended: default');
    expect(await stream).toContain('error');
  });
});

test('run.kill: a turn that delegated nothing is listed while it runs, and ends', async () => {
  const turn = server.client.call('agent.execute', { message: 'Work' });
  await atWork();
  const rootRunId = calls[0]?.call.agentCaller?.turn?.rootRunId ?? '';
  expect(await server.client.call('run.list', { state: 'active', limit: 1 })).toMatchObject({
    runs: [{ rootRunId, state: 'active' }],
    hasMore: false,
  });
  expect(await (await server.as(['rpc'])).call('run.list', {})).toMatchObject({ runs: [], total: 0 });
  expect(await server.client.call('run.kill', { rootRunId })).toEqual({ killed: 1 });
  expect(await turn).toMatchObject({ finishReason: 'aborted', failure: { message: 'The run was killed' } });
  expect((await server.client.call('run.list', {})).runs).toMatchObject([{ rootRunId, state: 'revoked' }]);
});

test('agents.suspend: running turns end and new ones are refused, until it is resumed', async () => {
  const turn = server.client.call('agent.execute', { agentId: 'spare', message: 'Work' });
  const queued = server.client.call('agent.execute', { agentId: 'spare', message: 'Work' }).catch((error: unknown) => error);
  await atWork();
  await server.client.call('agents.suspend', { agentId: 'spare' });
  expect(await turn).toMatchObject({ finishReason: 'aborted', failure: { message: 'Agent is suspended: spare' } });
  expect(await queued).toMatchObject({ code: 'precondition_failed' });
  await server.client.call('agents.resume', { agentId: 'spare' });
  server.provider.queue({ text: 'Back.' });
  expect(await server.client.call('agent.execute', { agentId: 'spare', message: 'Hello' })).toMatchObject({ response: 'Back.' });
});

test('agents.suspend: accepted work waits for the resume, without an attempt', async () => {
  server.provider.queue({ text: 'Ready.' });
  const { conversationRef } = await server.client.call('agent.execute', { agentId: 'spare', message: 'Begin' });
  const turn = server.client.call('agent.execute', { conversationRef, message: 'Work' });
  await atWork();
  await server.client.call('session.send', { conversationRef, text: 'Later, please', mode: 'fire-and-forget' });
  const deliveries = () => server.client.call('session.history', { conversationRef });
  await server.client.call('agents.suspend', { agentId: 'spare' });
  await turn;
  server.provider.setAnswer(() => ({ text: 'Now.' }));
  await server.client.call('agents.resume', { agentId: 'spare' });
  await expect.poll(async () => (await deliveries()).messages.at(-1)?.content).toBe('Now.');
});

describe.skipIf(findCommand('bwrap') === undefined)('commands in the background', () => {
  const toolCall = (name: string, args: object) => ({ toolCalls: [{ id: `call_${crypto.randomUUID()}`, name, arguments: JSON.stringify(args) }] });
  const command = toolCall('exec', { argv: ['sh', '-c', 'setsid sleep 600 & sleep 600'], background: true });
  const running = async () => (await server.client.call('background.list', {})).items;
  const noneLeft = () => expect.poll(running).toEqual([]);

  /** Runs a turn that starts a command and ends; returns the holder of its token. */
  async function begin(agentId = 'default') {
    const holder = await server.as(['rpc']);
    server.provider.queue(command, { text: 'It runs.' });
    const { conversationRef } = await holder.call('agent.execute', { agentId, message: 'Start it' });
    const [item] = (await holder.call('background.list', {})).items;
    expect(item).toMatchObject({ kind: 'command', agentId, conversationRef, description: expect.stringContaining('setsid sleep') });
    return { holder, conversationRef, id: item?.id ?? '', rootRunId: item?.rootRunId ?? '' };
  }

  test('end with the token, the root, the conversation and the agent that they belong to', async () => {
    const one = await begin();
    await server.client.call('tokens.revoke', { id: one.holder.tokenId });
    await noneLeft();
    for (const stop of ['run.kill', 'lease.revoke'] as const) {
      const { rootRunId } = await begin();
      await server.client.call(stop, { rootRunId });
      await noneLeft();
      // Also for the process that follows.
      expect((await server.client.call('run.list', {})).runs).toContainEqual(expect.objectContaining({ rootRunId, state: 'revoked' }));
    }
    const { conversationRef } = await begin();
    await server.client.call('session.delete', { conversationRef });
    await noneLeft();
    await begin('spare');
    await server.client.call('agents.suspend', { agentId: 'spare' });
    await noneLeft();
    await server.client.call('agents.resume', { agentId: 'spare' });
  });

  test('end with the sub-agent, and with its lease', async () => {
    server.provider.setAnswer(({ body }) => (JSON.stringify(body).includes('Started in the background') ? toolCall(work.name, {}) : command));
    for (const how of ['subagent.kill', 'lease.revoke'] as const) {
      calls.length = 0;
      const { runId } = await server.client.call('session.spawn', { task: 'Start it and work', toolGroups: ['coding', 'mcp'] });
      await atWork();
      expect(await running()).toMatchObject([{ runId, kind: 'command' }]);
      const leaseId = calls[0]?.call.agentCaller?.turn?.run?.leaseId ?? '';
      await (how === 'subagent.kill' ? server.client.call(how, { target: runId }) : server.client.call(how, { leaseId }));
      await noneLeft();
      await server.client.call('subagent.kill', { target: runId }).catch(() => undefined);
    }
  });

  test('their owner lists and stops them; others cannot see them', async () => {
    const { holder, id } = await begin();
    const other = await server.as(['rpc']);
    expect((await other.call('background.list', {})).total).toBe(0);
    await expect(other.call('background.stop', { id })).rejects.toMatchObject({ code: 'not_found' });
    expect(await holder.call('background.stop', { id })).toEqual({ id, stopped: true });
    expect(await running()).toEqual([]);
  });
});
