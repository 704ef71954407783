import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyHome, createStepClock, sql, startTestServer, type StepClock, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import * as z from 'zod';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';

/** Calls of the tool `slow` that run until the test ends them. */
const open: { readonly context: ToolContext; readonly end: (result: ToolResult) => void }[] = [];
const slow: Tool = {
  name: 'slow',
  description: 'Takes long.',
  args: z.strictObject({ what: z.string().default('tests') }),
  risk: 'write',
  effect: 'once',
  timeoutMs: 300_000,
  promotable: true,
  run: (_args, context) => new Promise((end) => open.push({ context, end })),
};
let charged = 0;
const charge: Tool = {
  name: 'charge',
  description: 'Charges the card.',
  args: z.strictObject({}),
  risk: 'write',
  effect: 'once',
  timeoutMs: 1000,
  run: async () => ({ content: `charged ${(charged += 1)}` }),
};

let clock: StepClock;
let server: TestServer;
const start = (options: TestServerOptions = {}) =>
  startTestServer({
    clock,
    tools: [slow, charge],
    ...options,
    config: {
      // Results are fenced, so a turn that reads them may write only where a rule allows it.
      approvals: { rules: [{ tools: ['slow', 'charge'], action: 'auto', tainted: true }] },
      agents: {
        default: { model: 'mock/mock-fast', tools: { allow: ['slow', 'charge'] } },
        two: { model: 'mock/mock-fast', tools: { allow: ['slow'] }, background: { maxRunning: 1, maxMs: 60_000 } },
        ...options.config?.agents,
      },
    },
  });
beforeEach(async () => {
  open.length = 0;
  charged = 0;
  clock = createStepClock();
  server = await start();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  for (const dir of homes.splice(0)) await rm(dir, { recursive: true, force: true });
});
const homes: string[] = [];

const callSlow = { toolCalls: [{ id: 'c1', name: 'slow', arguments: '{}' }] };
const call = (name: string, args: object = {}) => ({ toolCalls: [{ id: `c_${name}`, name, arguments: JSON.stringify(args) }] });
const execute = (message: string, agentId = 'default') => server.client.call('agent.execute', { message, agentId });
const messagesOf = async (conversationRef: string) =>
  (await server.client.call('session.history', { conversationRef })).messages.map(({ role, content }) => `${role}: ${content}`);
const asked = () =>
  server.provider.requests.map(
    ({ body }) => body as { messages: { role: string; content: string | null }[]; tools?: { function: { name: string } }[] },
  );
const running = (count = 1) => expect.poll(() => open.length).toBe(count);

/** Runs a turn whose call of `slow` moved to the background. */
async function promote(agentId = 'default') {
  server.provider.queue(callSlow, { text: 'It is running.' });
  const turn = execute('Run the tests', agentId);
  const before = open.length;
  await running(before + 1);
  clock.advance(30_000);
  return { ...(await turn), task: open.at(-1) };
}

describe('a long call', () => {
  test('continues without its turn; its result returns once, in a separate turn', async () => {
    const heard = [
      server.heard('background_task:promoted'),
      server.heard('background_task:completed'),
      server.heard('background_task:notified'),
      server.heard('background_task:reentered'),
    ];
    const begun = server.heard('tool:started');
    const received = server.heard('message:received');
    const sent = server.heard('message:sent');
    const activity = server.heard('tool:finished');
    const { finishReason, response, conversationRef, task } = await promote();
    expect([finishReason, response]).toEqual(['background_pending', 'It is running.']);
    expect(begun).toMatchObject([{ toolName: 'slow', callId: 'c1', description: 'slow', conversationRef }]);
    expect(activity).toMatchObject([{ toolName: 'slow', callId: 'c1', outcome: 'background', durationMs: 30_000 }]);

    server.provider.queue({ text: 'They passed.' });
    clock.advance(10_000);
    task?.end({ content: '42 tests passed' });
    await expect.poll(() => sent.length).toBe(2);
    const [, calls = '', result, answered, announcement = '', notified, ...more] = await messagesOf(conversationRef);
    expect(calls).toContain('assistant');
    expect([result, answered, notified, more]).toEqual([
      expect.stringContaining('in the background as task bt_'),
      'assistant: It is running.',
      'assistant: They passed.',
      [],
    ]);
    expect(announcement).toMatch(
      /^user: \[Background task bt_\S+ ended: ok, after 40 s\. It was a call of "slow": "slow"\..+<<<UNTRUSTED-TEXT .+42 tests passed/s,
    );
    expect(received).toMatchObject([{ origin: 'rpc' }, { origin: 'background', message: { senderId: 'background' }, conversationRef }]);
    expect(sent[1]).toMatchObject({ origin: 'background', finishReason: 'stop', content: 'They passed.' });
    const counts = { agentId: 'default', count: 1, timestamp: expect.any(Number) };
    expect(heard).toEqual([[counts], [counts], [], [counts]]);
    clock.advance(3_600_000);
    await execute('And?');
    expect(
      asked()
        .at(-1)
        ?.messages.filter(({ content }) => content?.includes('42 tests passed')),
    ).toHaveLength(1);
  });

  test('counts, with the turn that reports it, against the request that started it and its limits', async () => {
    await server[Symbol.asyncDispose]();
    const tools = ['slow', 'sessions_spawn'];
    server = await start({
      config: {
        agents: { default: { model: 'mock/mock-fast', tools: { allow: tools } } },
        approvals: { rules: [{ tools, action: 'auto', tainted: true }] },
      },
    });
    const { task } = await promote();
    const spawned = server.heard('session:sub_agent_spawned');
    server.provider.queue(call('sessions_spawn', { task: 'More.' }), { text: 'Delegated.' });
    clock.advance(10_000);
    task?.end({ content: 'ok' });
    await expect.poll(() => spawned.map(({ rootRunId }) => rootRunId)).toEqual([`root-turn-${task?.context.turnId}`]);
  });

  test('that ends during a turn of its conversation joins the next step of that turn only', async () => {
    const notified = server.heard('background_task:notified');
    const { conversationRef, task } = await promote();
    server.provider.queue(callSlow, { text: 'Both are known.' });
    const turn = execute('Once more');
    await running(2);
    task?.end({ content: 'the first result' });
    await expect.poll(async () => (await server.client.call('session.status', {})).queued).toBe(1);
    open[1]?.end({ content: 'the second result' });
    expect(await turn).toMatchObject({ finishReason: 'stop', response: 'Both are known.' });
    await expect.poll(() => notified).toMatchObject([{ agentId: 'default', count: 1 }]);
    expect(asked().at(-1)?.messages.at(-1)).toMatchObject({ role: 'user', content: expect.stringContaining('the first result') });
    await expect.poll(async () => (await server.client.call('session.status', {})).running).toBe(false);
    const all = await messagesOf(conversationRef);
    expect(all.filter((text) => text.includes('the first result'))).toHaveLength(1);
    expect(all.at(-1)).toBe('assistant: Both are known.');
  });

  test('is stopped at its deadline, and this is reported', async () => {
    const sent = server.heard('message:sent');
    const { task, conversationRef } = await promote('two');
    clock.advance(30_000);
    await expect.poll(() => sent.length).toBe(2);
    expect(task?.context.signal.aborted).toBe(true);
    expect((await messagesOf(conversationRef)).join('\n')).toMatch(/ended: timeout.*no result within 60000 ms/s);
  });

  test('stays in its turn when the agent has reached its limit', async () => {
    await promote('two');
    server.provider.queue(callSlow, { text: 'Waited.' });
    const turn = server.client.call('agent.execute', { message: 'Again', agentId: 'two', sessionKey: 'ada:other' });
    await running(2);
    clock.advance(25_000);
    open[1]?.end({ content: 'in its turn' });
    expect(await turn).toMatchObject({ finishReason: 'stop', response: 'Waited.' });
    expect(asked().at(-1)?.messages.at(-1)?.content).toContain('in its turn');
  });
});

describe('background_tasks', () => {
  test('lists, shows and cancels only tasks of the conversation', async () => {
    const sent = server.heard('message:sent');
    const { task } = await promote();
    const id = /bt_[\w-]+/.exec(asked().at(-1)?.messages.at(-1)?.content ?? '')?.[0] ?? '';
    expect(asked()[0]?.tools?.map((tool) => tool.function.name)).toContain('background_tasks');
    const lastResult = () => asked().at(-1)?.messages.at(-1)?.content;

    server.provider.queue(call('background_tasks', { action: 'list' }), { text: 'a' });
    await execute('Which?');
    expect(lastResult()).toMatch(new RegExp(`^${id} running, 30 s, "slow": "slow"$`));
    for (const [action, expected] of [
      ['get', 'Task not found'],
      ['cancel', 'Task not found'],
    ] as const) {
      server.provider.queue(call('background_tasks', { action, taskId: id }), { text: 'b' });
      await server.client.call('agent.execute', { message: 'Elsewhere', sessionKey: 'bob:desk' });
      expect(lastResult()).toBe(expected);
    }
    expect(task?.context.signal.aborted).toBe(false);

    server.provider.queue(call('background_tasks', { action: 'cancel', taskId: id }), { text: 'c' });
    await execute('Stop it');
    expect(lastResult()).toContain('is cancelled');
    expect(task?.context.signal.aborted).toBe(true);
    const turns = sent.length;
    server.provider.queue(call('background_tasks', { action: 'get', taskId: id }), { text: 'd' });
    await execute('What became of it?');
    expect(lastResult()).toMatch(/cancelled, 30 s.*"slow" was stopped: it was cancelled/s);
    // The caller who cancels needs no notification.
    expect(sent).toHaveLength(turns + 1);
  });
});

describe('changes to the conversation while a task runs', () => {
  test.each(['session.reset', 'session.delete', 'session.reset_conversation'] as const)('%s stops the task and drops its result', async (method) => {
    const sent = server.heard('message:sent');
    const { conversationRef, task } = await promote();
    const params = { conversationRef };
    if (method === 'session.reset_conversation') await server.client.call(method, { ...params, memory: false });
    else await server.client.call(method, params);
    expect(task?.context.signal.aborted).toBe(true);
    task?.end({ content: 'too late' });
    clock.advance(3_600_000);
    await execute('New beginning');
    expect(
      asked()
        .at(-1)
        ?.messages.map(({ content }) => content)
        .join('\n'),
    ).not.toContain('too late');
    expect(sent).toHaveLength(2);
  });

  test('a suspended agent stops its tasks, and is notified of all that ended when it is resumed', async () => {
    const sent = server.heard('message:sent');
    await server.client.call('agents.suspend', { agentId: 'two' });
    await server.client.call('agents.resume', { agentId: 'two' });
    const { task, conversationRef } = await promote('two');
    await server.client.call('agents.suspend', { agentId: 'two' });
    expect(task?.context.signal.aborted).toBe(true);
    clock.advance(60_000);
    expect(sent).toHaveLength(1);
    await server.client.call('agents.resume', { agentId: 'two' });
    await expect.poll(() => (clock.advance(60_000), sent.length)).toBe(2);
    expect((await messagesOf(conversationRef)).join('\n')).toMatch(/ended: cancelled.*its agent was suspended/s);
  });

  test('the result of a deleted token is dropped', async () => {
    const ada = await server.as(['rpc']);
    server.provider.queue(callSlow, { text: 'It is running.' });
    const turn = ada.call('agent.execute', { message: 'Run' });
    await running();
    clock.advance(30_000);
    const { conversationRef } = await turn;
    await server.client.call('tokens.revoke', { id: ada.tokenId });
    expect(open[0]?.context.signal.aborted).toBe(true);
    open[0]?.end({ content: 'for nobody' });
    clock.advance(60_000);
    expect((await messagesOf(conversationRef)).join('\n')).not.toContain('for nobody');
  });

  test('a deleted agent stops its tasks', async () => {
    await server.client.call('agents.create', { agentId: 'brief', config: { model: 'mock/mock-fast', tools: { allow: ['slow'] } } });
    const { task } = await promote('brief');
    await server.client.call('agents.delete', { agentId: 'brief' });
    expect(task?.context.signal.aborted).toBe(true);
  });
});

describe('a turn that a result starts', () => {
  test('has the authority of the turn that started the task, and no more', async () => {
    const { conversationRef, task } = await promote();
    const offered = asked()[0]?.tools?.map((tool) => tool.function.name);
    server.provider.queue(call('charge'), { text: 'Charged.' });
    task?.end({ content: 'done' });
    await expect.poll(async () => (await messagesOf(conversationRef)).at(-1)).toBe('assistant: Charged.');
    expect(charged).toBe(1);
    expect(
      asked()
        .at(-1)
        ?.tools?.map((tool) => tool.function.name),
    ).toEqual(offered);
    expect(JSON.stringify(asked().at(-1)?.messages[0])).toContain('Nobody is there to answer questions');
  });

  test('counts against the budgets of the agent: when they are spent the result is kept and no model is called', async () => {
    const sent = server.heard('message:sent');
    const { task, conversationRef } = await promote();
    await server.client.call('agents.update', { agentId: 'default', config: { budgets: { perHourTokens: 1 } } });
    const calls = asked().length;
    task?.end({ content: 'over the budget' });
    await expect.poll(() => sent.length).toBe(2);
    expect(sent[1]).toMatchObject({ origin: 'background', finishReason: 'budget_exceeded' });
    expect(asked()).toHaveLength(calls);
    expect((await messagesOf(conversationRef)).at(-1)).toContain('over the budget');
  });

  test('ends its chain at the limit: further calls stay in their turns', async () => {
    const sent = server.heard('message:sent');
    await promote();
    for (let turn = 1; turn <= 8; turn += 1) {
      server.provider.queue(callSlow, { text: `round ${turn}` });
      open.at(-1)?.end({ content: 'again' });
      await running(turn + 1);
      clock.advance(30_000);
      if (turn < 8) await expect.poll(() => sent.length).toBe(turn + 1);
    }
    open.at(-1)?.end({ content: 'in its turn' });
    await expect.poll(() => sent.length).toBe(9);
    expect(sent.at(-1)).toMatchObject({ content: 'round 8', finishReason: 'stop' });
  });
});

describe('after a restart', () => {
  let homeDir: string;
  beforeEach(async () => {
    await server[Symbol.asyncDispose]();
    homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-background-'));
    homes.push(homeDir);
    server = await start({ homeDir });
  });
  /** Starts another daemon in the same home; its tokens are those of the file. */
  const restart = async () => {
    await server[Symbol.asyncDispose]();
    server = await start({ homeDir });
    return server.heard('message:sent');
  };

  test('a task that was running is reported as unknown, once', async () => {
    const { conversationRef } = await promote();
    const sent = await restart();
    clock.advance(2_000);
    await expect.poll(() => sent.length).toBe(1);
    expect((await messagesOf(conversationRef)).join('\n')).toMatch(/ended: unknown\. .*It is not known how far it got/s);
    const again = await restart();
    clock.advance(120_000);
    await execute('Anything else?');
    expect(again).toHaveLength(1);
  });

  test('a result returns with the authority of the turn that spoke for others, and no more', async () => {
    await promote();
    expect(asked()[0]?.tools?.map((tool) => tool.function.name)).toContain('charge');
    await server[Symbol.asyncDispose]();
    await sql(homeDir, `UPDATE background_task SET begun_by = 'mcp'`);
    server = await start({ homeDir });
    const sent = server.heard('message:sent');
    server.provider.queue(call('charge'), { text: 'It was refused.' });
    clock.advance(2_000);
    await expect.poll(() => sent.length).toBe(1);
    expect(asked()[0]?.tools?.map((tool) => tool.function.name)).not.toContain('charge');
    expect(charged).toBe(0);
  });

  test('a turn that received the result and died is notified again, with a warning when it may have acted', async () => {
    const crashed = await mkdtemp(join(tmpdir(), 'gatehouse-background-'));
    homes.push(crashed);
    const { conversationRef, task } = await promote();
    server.provider.queue(call('charge'), { hang: true });
    task?.end({ content: 'act on this' });
    await expect.poll(() => [charged, asked().length]).toEqual([1, 4]);
    // What a power cut would leave: the files as they are now, and no lock.
    await copyHome(homeDir, crashed);
    await server[Symbol.asyncDispose]();
    server = await start({ homeDir: crashed });
    const sent = server.heard('message:sent');
    clock.advance(2_000);
    await expect.poll(() => sent.length).toBe(1);
    const notices = (await messagesOf(conversationRef)).filter((text) => text.includes('act on this'));
    expect(notices).toEqual([expect.stringContaining('An earlier turn started to act on this and was interrupted')]);
  });

  test('so is a turn of a user that took the result between two steps', async () => {
    const crashed = await mkdtemp(join(tmpdir(), 'gatehouse-background-'));
    homes.push(crashed);
    const { conversationRef, task } = await promote();
    server.provider.queue(callSlow, call('charge'), { hang: true });
    const turn = execute('Once more').catch(() => {});
    await running(2);
    task?.end({ content: 'act on this' });
    await expect.poll(async () => (await server.client.call('session.status', {})).queued).toBe(1);
    open[1]?.end({ content: 'quick' });
    await expect.poll(() => [charged, asked().length]).toEqual([1, 5]);
    await copyHome(homeDir, crashed);
    await server[Symbol.asyncDispose]();
    await turn;
    server = await start({ homeDir: crashed });
    const sent = server.heard('message:sent');
    clock.advance(2_000);
    await expect.poll(() => sent.length).toBe(1);
    const notices = (await messagesOf(conversationRef)).filter((text) => text.includes('act on this'));
    expect(notices).toEqual([expect.stringContaining('An earlier turn started to act on this and was interrupted')]);
  });

  test('an unreported result returns', async () => {
    const { conversationRef, task } = await promote('two');
    await server.client.call('agents.suspend', { agentId: 'two' });
    expect(task?.context.signal.aborted).toBe(true);
    const sent = await restart();
    await server.client.call('agents.resume', { agentId: 'two' });
    await expect.poll(() => (clock.advance(60_000), sent.length)).toBe(1);
    expect((await messagesOf(conversationRef)).filter((text) => text.includes('its agent was suspended'))).toHaveLength(1);
  });
});
