import type { AutonomyProfile, Capability } from '@gatehouse/contract';
import type { FakeAnswer, TestServer, TestServerOptions } from '@gatehouse/testkit';
import { startTestServer } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import * as z from 'zod';
import type { Tool, ToolContext } from '../../../runtime/tool.ts';

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

type Step = readonly string[];

/** Starts a server whose model calls the given tools step by step, with tools of the capabilities `spawn`, `graph` and `browse`. */
async function start(config: TestServerOptions['config'] = {}) {
  const contexts: ToolContext[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const tool = (name: string, capability?: Capability, more: Partial<Tool> = {}): Tool => ({
    name,
    description: 'A tool of a test.',
    args: z.looseObject({}),
    risk: 'read',
    effect: 'idempotent',
    timeoutMs: 5000,
    source: 'test',
    ...(capability !== undefined && { capability }),
    async run(_args, context) {
      contexts.push(context);
      await gates.get(name)?.promise;
      return { content: `${name} ran` };
    },
    ...more,
  });
  const server = await startTestServer({
    tools: [
      tool('spawn', 'orch:spawn'),
      tool('graph', 'orch:graph'),
      tool('browse', 'orch:browse'),
      tool('look'),
      tool('slow', undefined, { promotable: true }),
      tool('send', undefined, { risk: 'outward' }),
      tool('change', undefined, { risk: 'write' }),
    ],
    config: { ...config, agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } }, ...config.agents } },
  });
  open.push(server);
  let steps: Step[] = [];
  server.provider.setAnswer((): FakeAnswer => {
    const step = steps.shift();
    if (step === undefined) return { text: 'Done' };
    return { toolCalls: step.map((name) => ({ id: `call_${crypto.randomUUID()}`, name, arguments: '{}' })) };
  });
  return {
    server,
    contexts,
    /** Holds calls of a tool until the returned promise is resolved. */
    gate(name: string) {
      const held = Promise.withResolvers<void>();
      gates.set(name, held);
      return held;
    },
    turn(wanted: readonly Step[], agentId = 'default') {
      steps = [...wanted];
      return server.client.call('agent.execute', { message: 'Go', agentId });
    },
    rootRunId: () => contexts.at(-1)?.call.agentCaller?.turn?.rootRunId ?? '',
  };
}

/** Returns the tool results in the newest request. */
function toolResults(server: TestServer): string[] {
  const { messages } = z
    .object({ messages: z.array(z.object({ role: z.string(), content: z.string().nullish() })) })
    .parse(server.provider.requests.at(-1)?.body);
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => content ?? '');
}

const audited = async (server: TestServer) =>
  (await server.client.call('obs.audit.query', { actionType: 'capability.denied' })).rows.map(({ refs }) => refs);

const profiles: readonly (readonly [AutonomyProfile, readonly string[]])[] = [
  ['assistant', []],
  ['standard', ['spawn', 'graph']],
  ['unattended', ['spawn', 'graph']],
  ['max', ['spawn', 'graph', 'browse']],
];

test.each(profiles)('%s may start only what its profile allows', async (profile, allowed) => {
  const { server, turn, contexts } = await start({ autonomy: { profile } });
  const heard = server.heard('capability:audited');
  await turn([['spawn', 'graph', 'browse', 'look']]);
  const denied = [
    ['spawn', 'orch:spawn'],
    ['graph', 'orch:graph'],
    ['browse', 'orch:browse'],
  ].map(([name = '', capability]) => (allowed.includes(name) ? `${name} ran` : `Capability denied: ${capability}`));
  expect(toolResults(server)).toEqual([...denied, 'look ran']);
  expect(contexts).toHaveLength(allowed.length + 1);
  expect(heard.map(({ tool, decision }) => [tool, decision])).toEqual(
    ['spawn', 'graph', 'browse'].map((name) => [name, allowed.includes(name) ? 'allow' : 'deny']),
  );
  await expect.poll(async () => (await audited(server)).length).toBe(3 - allowed.length);
  const { autonomy } = await server.client.call('capabilities.introspect', {});
  expect([autonomy.profile, autonomy.caps.includes('orch:spawn'), autonomy.caps.includes('orch:browse')]).toEqual([
    profile,
    profile !== 'assistant',
    profile === 'max',
  ]);
});

test('an agent can have its own profile', async () => {
  const agents = { small: { model: 'mock/mock-fast', tools: { profile: 'full' as const }, autonomy: { profile: 'assistant' as const } } };
  const { server, turn } = await start({ agents });
  await turn([['spawn']], 'small');
  expect(toolResults(server)).toEqual(['Capability denied: orch:spawn']);
  await turn([['spawn']]);
  expect(toolResults(server)).toEqual(['spawn ran']);
  await expect.poll(async () => (await audited(server)).length).toBe(1);
  expect((await audited(server)).at(0)).toMatchObject({ capability: 'orch:spawn', agentId: 'small', tool: 'spawn', reason: 'standing' });
});

test('consecutive denials end a turn; an allowed call between them restarts the count', async () => {
  const { server, turn } = await start({ autonomy: { profile: 'assistant', guards: { denialBreaker: 3 } } });
  const broken = server.heard('autonomy:denial_breaker');
  expect(await turn([['spawn'], ['spawn'], ['look'], ['spawn'], ['spawn']])).toMatchObject({ finishReason: 'stop', response: 'Done' });
  expect(broken).toEqual([]);
  const ended = await turn([['spawn'], ['spawn'], ['spawn', 'look'], ['look']]).catch((error: unknown) => error);
  expect(JSON.stringify(ended)).toContain('denied repeatedly');
  expect(broken).toMatchObject([{ agentId: 'default', denials: 3 }]);
});

test('an unattended agent asks nobody: its owner is notified once per turn, while other agents still ask', async () => {
  const { server, turn, contexts } = await start({
    approvals: { mode: 'ask' },
    agents: { watch: { model: 'mock/mock-fast', tools: { profile: 'full' }, autonomy: { profile: 'unattended' } } },
  });
  await turn([['change', 'send'], ['change']], 'watch');
  expect(toolResults(server)).toEqual(Array(3).fill(expect.stringContaining('nobody is available to give it')));
  expect(contexts).toEqual([]);
  const { messages } = await server.client.call('inbox.list', {});
  expect(messages).toMatchObject([{ source: 'autonomy', level: 'alert', agentId: 'watch', text: expect.stringContaining('"change"') }]);
  const waiting = turn([['change']]);
  await expect.poll(async () => (await server.client.call('admin.approval.pending', {})).requests.length).toBe(1);
  const [request] = (await server.client.call('admin.approval.pending', {})).requests;
  await server.client.call('admin.approval.resolve', { requestId: request?.requestId ?? '', approved: true, approvedBy: 'operator' });
  expect(await waiting).toMatchObject({ finishReason: 'stop' });
  expect((await server.client.call('inbox.list', {})).messages).toHaveLength(1);
});

test('run.kill ends the turn of a root at once and refuses ended or unknown roots', async () => {
  const { server, turn, gate, contexts, rootRunId } = await start();
  const killed = server.heard('autonomy:killed');
  const held = gate('look');
  const running = turn([['look'], ['look']]).catch((error: unknown) => error);
  await expect.poll(() => contexts.length).toBe(1);
  expect(await server.client.call('run.kill', { rootRunId: rootRunId() })).toEqual({ killed: 1 });
  expect(JSON.stringify(await running)).toContain('aborted');
  held.resolve();
  expect(contexts).toHaveLength(1);
  expect(killed).toMatchObject([{ rootRunId: rootRunId(), killed: 1 }]);
  await expect
    .poll(async () => server.client.call('run.kill', { rootRunId: rootRunId() }).catch((error: { code: string }) => error.code))
    .toBe('precondition_failed');
  await expect(server.client.call('run.kill', { rootRunId: 'root-turn-nobody' })).rejects.toMatchObject({ code: 'not_found' });
  const { runs, total } = await server.client.call('run.list', { state: 'revoked' });
  expect([total, runs]).toMatchObject([1, [{ rootRunId: rootRunId(), state: 'revoked', agentId: 'default', origin: 'rpc', tokens: 0 }]]);
  const { rows } = await server.client.call('obs.audit.query', { actionType: 'run.kill' });
  expect(rows.map(({ target }) => target)).toEqual([rootRunId()]);
});

test('run.kill stops the background tasks of the root, and they never report', async () => {
  const { server, turn, gate, contexts, rootRunId } = await start({
    agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' }, background: { afterMs: 20 } } },
  });
  const slow = gate('slow');
  const look = gate('look');
  const running = turn([['slow'], ['look']]).catch((error: unknown) => error);
  await expect.poll(() => contexts.length).toBe(2);
  expect(await server.client.call('run.kill', { rootRunId: rootRunId() })).toEqual({ killed: 2 });
  await running;
  expect(contexts.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  const asked = server.provider.requests.length;
  slow.resolve();
  look.resolve();
  // A separate turn would queue before this one in the lane of the conversation.
  await turn([]);
  expect(server.provider.requests).toHaveLength(asked + 1);
});

test('lease.revoke lets a call that passed its check complete, and refuses the next', async () => {
  const { server, turn, gate, contexts, rootRunId } = await start();
  const heard = server.heard('autonomy:revoked');
  const held = gate('spawn');
  const running = turn([['spawn', 'spawn', 'look'], ['look']]).catch((error: unknown) => error);
  await expect.poll(() => contexts.length).toBe(1);
  const before = server.provider.requests.length;
  expect(await server.client.call('lease.revoke', { rootRunId: rootRunId() })).toEqual({ revoked: 0 });
  expect(contexts[0]?.signal.aborted).toBe(false);
  held.resolve();
  expect(JSON.stringify(await running)).toContain('The run was stopped');
  expect(contexts).toHaveLength(1);
  // The model is not called again either.
  expect(server.provider.requests).toHaveLength(before);
  expect(heard).toMatchObject([{ rootRunId: rootRunId(), revoked: 0 }]);
  await expect(server.client.call('lease.revoke', {})).rejects.toMatchObject({ code: 'invalid_params' });
  expect(await server.client.call('lease.revoke', { leaseId: 'ls_unknown' })).toEqual({ revoked: 0 });
});

test('autonomy.evict lowers the profile from the next decision on, and aborts nothing', async () => {
  const { server, turn, gate, contexts, rootRunId } = await start({ autonomy: { profile: 'max' } });
  const held = gate('look');
  const running = turn([['browse'], ['look'], ['browse', 'spawn']]);
  await expect.poll(() => contexts.length).toBe(2);
  expect(await server.client.call('autonomy.evict', { rootRunId: rootRunId() })).toEqual({ evicted: true });
  held.resolve();
  expect(await running).toMatchObject({ finishReason: 'stop' });
  expect(toolResults(server)).toEqual(['browse ran', 'look ran', 'Capability denied: orch:browse', 'spawn ran']);
  expect((await server.client.call('run.list', {})).runs).toMatchObject([{ rootRunId: rootRunId(), evicted: true, profile: 'standard' }]);
  await expect(server.client.call('autonomy.evict', { rootRunId: 'root-turn-nobody' })).rejects.toMatchObject({ code: 'not_found' });
});

test('outward calls have an hourly quota, which introspection shows', async () => {
  const { server, turn } = await start({ autonomy: { guards: { outward: { perHour: 2 } } } });
  await turn([['send', 'send', 'send']]);
  expect(toolResults(server)).toEqual(['send ran', 'send ran', expect.stringContaining('too many outward calls')]);
  const { autonomy } = await server.client.call('capabilities.introspect', {});
  expect(autonomy).toMatchObject({ outwardQuota: { perHourRemaining: 0 }, spawns: { perMinuteRemaining: 30 }, messages: { perHourRemaining: 20 } });
  expect(autonomy.budget).toEqual({ tokensRemaining: 200_000_000, usdRemaining: 200, wallClockMsRemaining: 48 * 3_600_000 });
});

test('only admins stop runs; other callers see their own', async () => {
  const { server, turn, gate, contexts, rootRunId } = await start();
  const held = gate('look');
  const running = turn([['look']]);
  await expect.poll(() => contexts.length).toBe(1);
  await server.client.call('autonomy.evict', { rootRunId: rootRunId() });
  held.resolve();
  await running;
  const bob = await server.as(['rpc']);
  for (const attempt of [
    () => bob.call('run.kill', { rootRunId: rootRunId() }),
    () => bob.call('lease.revoke', { rootRunId: rootRunId() }),
    () => bob.call('autonomy.evict', { rootRunId: rootRunId() }),
  ])
    await expect(attempt()).rejects.toMatchObject({ code: 'insufficient_scope' });
  expect(await bob.call('run.list', {})).toMatchObject({ runs: [], total: 0 });
  expect(await server.client.call('run.list', { limit: 1 })).toMatchObject({ total: 1, hasMore: false });
});
