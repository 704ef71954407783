import type { ParamsInput } from '@gatehouse/contract';
import { createStepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { calls, createCountingTools, done } from './testing/tools.ts';

type Config = NonNullable<TestServerOptions['config']>;

interface Options {
  readonly agents?: Config['agents'];
  readonly homeDir?: string;
  readonly fingerprint?: string;
  readonly secrets?: readonly string[];
}

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function start(approvals: Config['approvals'] = {}, more: Options = {}) {
  const clock = createStepClock();
  const counting = createCountingTools(more.fingerprint);
  const server = await startTestServer({
    clock,
    tools: counting.tools,
    config: { approvals, agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } }, ...more.agents } },
    ...(more.homeDir !== undefined && { homeDir: more.homeDir }),
    ...(more.secrets !== undefined && { secrets: more.secrets }),
  });
  open.push(server);
  const scripts: (typeof done)[][] = [];
  server.provider.setAnswer(({ body }) => {
    const asked = JSON.stringify(body)
      .match(/script \d+/g)
      ?.at(-1);
    return scripts[Number(asked?.slice(7))]?.shift() ?? done;
  });
  const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
  return {
    ...counting,
    clock,
    server,
    pending,
    /** Runs a turn in which the model makes these calls, one per step. */
    turn(steps: readonly (readonly (readonly [string, object])[])[], params: Partial<ParamsInput<'agent.execute'>> = {}, signal?: AbortSignal) {
      const message = `Follow script ${scripts.push(steps.map((step) => calls(...step))) - 1}`;
      return server.client.call('agent.execute', { message, ...params }, signal === undefined ? {} : { signal });
    },
    async waiting(count = 1) {
      await expect.poll(async () => (await pending()).length).toBe(count);
      return pending();
    },
  };
}

/** Tool results that the newest request showed the model. */
function toolResults(server: TestServer): string[] {
  const body = server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] };
  return body.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
}

const askChange = { rules: [{ tools: ['change'], action: 'ask' as const }] };

test('a call that a rule names waits for a decision, is shown whole, and runs when it is approved', async () => {
  const { server, turn, waiting, count, ran } = await start(askChange);
  const requested = server.heard('approval:requested');
  const resolved = server.heard('approval:resolved');
  const running = turn([[['change', { path: 'a', list: [1, { deep: true }] }]]]);
  const [request] = await waiting();
  expect(request).toMatchObject({
    toolName: 'change',
    action: 'change path, list',
    params: { path: 'a', list: [1, { deep: true }] },
    paramsBytes: 37,
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    reason: 'approvals.rules[0]',
    agentId: 'default',
    origin: 'rpc',
    trustLevel: 'clean',
    timeoutMs: 300_000,
  });
  expect(count('change')).toBe(0);
  const { requestId } = request!;
  const answer = await server.client.call('admin.approval.resolve', { requestId, approved: true, approvedBy: 'ada', reason: 'fine' });
  expect(answer).toEqual({ requestId, approved: true, approvedBy: 'ada', reason: 'fine' });
  expect((await running).finishReason).toBe('stop');
  expect(ran.map(({ args }) => args)).toEqual([{ path: 'a', list: [1, { deep: true }] }]);
  expect(Object.isFrozen(ran[0]?.args)).toBe(true);
  expect(requested).toEqual([expect.objectContaining({ requestId, params: { path: 'a', list: [1, { deep: true }] } })]);
  expect(resolved).toEqual([expect.objectContaining({ requestId, approved: true, approvedBy: 'ada', reason: 'fine' })]);
  const { rows } = await server.client.call('obs.audit.query', { target: requestId });
  expect(rows).toEqual([expect.objectContaining({ kind: 'approval', outcome: 'success', actor: 'token:root', action: 'approval.resolve' })]);
});

test('an approval covers the files that a call names as they were: a script that changes meanwhile is not run', async () => {
  const { server, turn, waiting, count } = await start(askChange);
  const put = (content: string) => server.client.call('workspace.writeFile', { agentId: 'default', filePath: 'projects/run.sh', content });
  // Extra words before it hide nothing.
  const words = Array.from({ length: 300 }, (_, n) => `word${n}`).join(' ');
  const call = { argv: ['sh', '-c', `echo ${words}; sh ./run.sh now`], cwd: 'projects' };
  await put('echo one');
  const running = turn([[['change', call]]]);
  const [request] = await waiting();
  await put('echo two');
  await server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true });
  await running;
  expect(toolResults(server).at(-1)).toContain('was changed while the call waited');
  expect(count('change')).toBe(0);
  // The approval stays valid for a while, but not for the other content.
  const again = turn([[['change', call]]]);
  const [second] = await waiting();
  await server.client.call('admin.approval.resolve', { requestId: second!.requestId, approved: true });
  await again;
  expect(count('change')).toBe(1);
});

test('a denial reaches the model with its reason, holds for the same call for a while, and can be cleared', async () => {
  const { server, turn, waiting, pending, count, clock } = await start(askChange);
  const denyNext = async (reason?: string) => {
    const [request] = await waiting();
    await server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: false, ...(reason !== undefined && { reason }) });
  };
  let running = turn([[['change', { n: 1 }]]]);
  await denyNext('not on a Sunday');
  await running;
  expect(toolResults(server).at(-1)).toContain('was denied: not on a Sunday');
  await turn([[['change', { n: 1 }]]]);
  expect(toolResults(server).at(-1)).toContain('not on a Sunday');
  expect(await pending()).toEqual([]);

  await server.client.call('admin.approval.clearDenialCache', { sessionKey: 'somebody:else' });
  await turn([[['change', { n: 1 }]]]);
  await server.client.call('admin.approval.clearDenialCache', {});
  running = turn([[['change', { n: 1 }]]]);
  await denyNext();
  await running;
  clock.advance(60_001);
  running = turn([[['change', { n: 1 }]]]);
  await denyNext();
  await running;
  expect(count('change')).toBe(0);
});

test('an undecided request is denied by system:timeout, and that is not remembered as a denial', async () => {
  const { server, turn, waiting, pending, clock, count } = await start(askChange);
  const resolved = server.heard('approval:resolved');
  const running = turn([[['change', {}]]]);
  const [request] = await waiting();
  clock.advance(300_000);
  await running;
  expect(toolResults(server).at(-1)).toContain('nobody approved');
  expect(resolved).toEqual([expect.objectContaining({ approved: false, approvedBy: 'system:timeout' })]);
  await expect(server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true })).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('system:timeout'),
  });
  const again = turn([[['change', {}]]]);
  const [second] = await waiting();
  await server.client.call('admin.approval.resolve', { requestId: second!.requestId, approved: true });
  await again;
  expect([count('change'), await pending()]).toEqual([1, []]);
});

test('of twenty decisions that race on both transports exactly one wins', async () => {
  const { server, turn, waiting, count } = await start(askChange);
  const socket = server.socket();
  try {
    for (const round of [1, 2, 3]) {
      const running = turn([[['change', { round }]]]);
      const [request] = await waiting();
      const decisions = Array.from({ length: 20 }, (_, n) => {
        const params = { requestId: request!.requestId, approved: n % 4 < 2, approvedBy: `person ${n}` };
        return n % 2 === 0 ? server.client.call('admin.approval.resolve', params) : socket.call('admin.approval.resolve', params);
      });
      const outcomes = await Promise.allSettled(decisions);
      const won = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      expect(won).toHaveLength(1);
      for (const outcome of outcomes)
        if (outcome.status === 'rejected')
          expect(outcome.reason).toMatchObject({ code: 'conflict', message: expect.stringContaining(won[0]!.approvedBy) });
      const before = count('change');
      await running;
      expect(count('change') - before <= 1).toBe(true);
      expect(toolResults(server).at(-1)).toContain(won[0]!.approved ? 'change ran' : 'denied');
    }
  } finally {
    socket.close();
  }
});

test('only the approved call runs: any other argument, conversation or agent asks again, the same call does not for a while', async () => {
  const { server, turn, waiting, count, clock } = await start(askChange, {
    agents: { other: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
  });
  const approveNext = async () => {
    const [request] = await waiting();
    await server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true });
  };
  const asked = server.heard('approval:requested');
  const first = { to: 'ada', subject: 'x' };
  let running = turn([[['change', first]]]);
  await approveNext();
  await running;
  // The order of keys makes no difference.
  await turn([[['change', { subject: 'x', to: 'ada' }]]]);
  expect([count('change'), asked.length]).toEqual([2, 1]);
  for (const [args, params] of [
    [{ ...first, bcc: 'eve' }, {}],
    [{ ...first, subject: 'X' }, {}],
    [{ ...first, subject: ['x'] }, {}],
    [first, { sessionKey: 'ada:elsewhere' }],
    [first, { agentId: 'other' }],
  ] as const) {
    const before = asked.length;
    running = turn([[['change', args]]], params);
    await approveNext();
    await running;
    expect(asked.length).toBe(before + 1);
  }
  clock.advance(30_001);
  running = turn([[['change', first]]]);
  await approveNext();
  await running;
  expect(new Set(asked.map(({ digest }) => digest)).size).toBe(6);
});

test('a tool whose request changes asks again', async () => {
  const config = { ...askChange, approvalCacheMs: 3_600_000 };
  const first = await start(config, { fingerprint: 'one' });
  const { homeDir } = first.server;
  const running = first.turn([[['change', {}]]]);
  const [request] = await first.waiting();
  await first.server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true });
  await running;
  await first.server.server[Symbol.asyncDispose]();
  const session = { sessionKey: request!.sessionKey };

  const same = await start(config, { fingerprint: 'one', homeDir });
  await same.turn([[['change', {}]]], session);
  expect(same.count('change')).toBe(1);
  await same.server.server[Symbol.asyncDispose]();

  const other = await start(config, { fingerprint: 'two', homeDir });
  const again = other.turn([[['change', {}]]], session);
  const [next] = await other.waiting();
  expect(next!.digest).not.toBe(request!.digest);
  await other.server.client.call('admin.approval.resolve', { requestId: next!.requestId, approved: false });
  await again;
  expect(other.count('change')).toBe(0);
});

test('equal pending calls share one request', async () => {
  const { server, turn, waiting, count } = await start({ rules: [{ tools: ['fetch_page'], action: 'ask' }] });
  const asked = server.heard('approval:requested');
  const running = turn([Array.from({ length: 5 }, () => ['fetch_page', { url: 'https://example.org/' }] as const)]);
  const [request] = await waiting();
  await server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true });
  await running;
  expect([count('fetch_page'), asked.length]).toEqual([5, 1]);
});

test('a request outlives its turn and a restart; a later approval is valid for exactly that call, once', async () => {
  const first = await start(askChange);
  const { homeDir } = first.server;
  const leaving = new AbortController();
  const gone = first.turn([[['change', { n: 1 }]]], {}, leaving.signal).catch(() => 'gone');
  const [request] = await first.waiting();
  leaving.abort();
  await gone;
  await expect.poll(() => first.server.client.call('gateway.status').then(({ turns }) => turns.running)).toBe(0);
  expect(await first.pending()).toEqual([request]);
  await first.server.server[Symbol.asyncDispose]();

  const second = await start(askChange, { homeDir });
  const asked = second.server.heard('approval:requested');
  expect(await second.pending()).toEqual([request]);
  await second.server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true });
  const session = { sessionKey: request!.sessionKey };
  await second.turn([[['change', { n: 1 }]]], session);
  expect([second.count('change'), asked.length]).toEqual([1, 0]);
  const again = second.turn([[['change', { n: 1 }]]], session);
  const [next] = await second.waiting();
  await second.server.client.call('admin.approval.resolve', { requestId: next!.requestId, approved: false });
  await again;
  expect([second.count('change'), asked.length]).toEqual([1, 1]);
});

test('an undecided request expires after a restart too, and a grant does not last for ever', async () => {
  const first = await start({ ...askChange, approvalCacheMs: 3_600_000 });
  const { homeDir } = first.server;
  for (const n of [1, 2]) {
    const leaving = new AbortController();
    const gone = first.turn([[['change', { n }]]], { sessionKey: `ada:${n}` }, leaving.signal).catch(() => 'gone');
    await first.waiting(n);
    leaving.abort();
    await gone;
  }
  await first.server.server[Symbol.asyncDispose]();

  const second = await start({ ...askChange, approvalCacheMs: 3_600_000 }, { homeDir });
  const resolved = second.server.heard('approval:resolved');
  const [one] = await second.pending();
  await second.server.client.call('admin.approval.resolve', { requestId: one!.requestId, approved: true });
  second.clock.advance(300_000);
  await expect.poll(() => resolved.map(({ approvedBy }) => approvedBy)).toEqual(['operator', 'system:timeout']);
  second.clock.advance(300_000);
  const running = second.turn([[['change', { n: 1 }]]], { sessionKey: one!.sessionKey });
  const [again] = await second.waiting();
  await second.server.client.call('admin.approval.resolve', { requestId: again!.requestId, approved: false });
  await running;
  expect(second.count('change')).toBe(0);
});

test.each(['session.reset', 'session.reset_conversation', 'session.delete'] as const)(
  '%s drops what was decided in the conversation and what waits',
  async (method) => {
    const { server, turn, waiting, pending } = await start({ ...askChange, approvalCacheMs: 3_600_000 });
    const resolved = server.heard('approval:resolved');
    let running = turn([[['change', { n: 1 }]]]);
    const [request] = await waiting();
    await server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true });
    await running;
    const leaving = new AbortController();
    const gone = turn([[['change', { n: 2 }]]], {}, leaving.signal).catch(() => 'gone');
    await waiting();
    leaving.abort();
    await gone;
    await server.client.call(method, { sessionKey: request!.sessionKey });
    expect(await pending()).toEqual([]);
    expect(resolved.at(-1)).toMatchObject({
      approved: false,
      approvedBy: 'system:dropped',
      agentId: 'default',
      conversationRef: request!.conversationRef,
    });
    running = turn([[['change', { n: 1 }]]]);
    const [again] = await waiting();
    await server.client.call('admin.approval.resolve', { requestId: again!.requestId, approved: false });
    await running;
  },
);

test('rules are tried in order, by tool, agent, origin and argument', async () => {
  const { server, turn, count, pending } = await start(
    {
      rules: [
        { tools: ['change'], match: { path: 'public/*' }, action: 'auto' },
        { tools: ['change'], agents: ['other'], action: 'auto' },
        { tools: ['lo*'], match: { what: 'se?ret*' }, action: 'deny' },
        { tools: ['send'], origins: ['api'], action: 'auto' },
        { tools: ['change', 'send'], action: 'deny' },
      ],
    },
    { agents: { other: { model: 'mock/mock-fast', tools: { profile: 'full' } } } },
  );
  const outcome = async (name: string, args: object, params = {}) => {
    const before = count(name);
    await turn([[[name, args]]], params);
    return count(name) > before ? 'ran' : (toolResults(server).at(-1) ?? '');
  };
  expect(await outcome('change', { path: 'public/index.html' })).toBe('ran');
  expect(await outcome('change', { path: 'private' })).toContain('refuse');
  expect(await outcome('change', { path: 'public/../private' })).toContain('refuse');
  expect(await outcome('change', {}, { agentId: 'other' })).toBe('ran');
  expect(await outcome('look', { what: 'the weather' })).toBe('ran');
  expect(await outcome('look', { what: 'secret plans' })).toContain('refuse');
  expect(await outcome('look', { what: './anything' })).toContain('refuse');
  expect(await outcome('send', {})).toContain('refuse');
  expect(await pending()).toEqual([]);
});

test('the mode decides about calls that no rule names; read-only calls are free', async () => {
  const asking = await start({ mode: 'ask' });
  const running = asking.turn([[['look', {}]], [['send', {}]]]);
  const [request] = await asking.waiting();
  expect(request).toMatchObject({ toolName: 'send', reason: 'approvals.mode', trustLevel: 'clean' });
  await asking.server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true });
  await running;
  expect([asking.count('look'), asking.count('send')]).toEqual([1, 1]);

  const denying = await start({ mode: 'deny' });
  await denying.turn([
    [
      ['look', {}],
      ['change', {}],
    ],
  ]);
  expect([denying.count('look'), denying.count('change')]).toEqual([1, 0]);
});

test('resolveAll decides about all pending requests or those of one session key, and knows no other', async () => {
  const { server, turn, waiting, count } = await start(askChange);
  const running = ['ada:a', 'ada:b', 'ada:c'].map((sessionKey, n) => turn([[['change', { n }]]], { sessionKey }));
  const requests = await waiting(3);
  expect(await server.client.call('admin.approval.resolveAll', { approved: true, sessionKey: 'eve:a' })).toEqual({ resolved: 0, requestIds: [] });
  const one = await server.client.call('admin.approval.resolveAll', { approved: true, sessionKey: { userId: 'ada', channelId: 'b' } });
  expect(one).toEqual({ resolved: 1, requestIds: [requests.find(({ sessionKey }) => sessionKey === 'ada:b')?.requestId] });
  expect((await server.client.call('admin.approval.resolveAll', { approved: false })).resolved).toBe(2);
  await Promise.all(running);
  expect(count('change')).toBe(1);
});

test('a token that is limited to some agents sees and decides only their requests', async () => {
  const { server, turn, waiting } = await start(askChange, { agents: { other: { model: 'mock/mock-fast', tools: { profile: 'full' } } } });
  const limited = await server.as(['admin'], { agents: ['other'] });
  const running = turn([[['change', {}]]]);
  const [request] = await waiting();
  expect(await limited.call('admin.approval.pending', {})).toEqual({ requests: [], total: 0 });
  const unknown = { requestId: 'ap_00000000-0000-7000-8000-000000000000', approved: true };
  const answers = [unknown, { requestId: request!.requestId, approved: true }].map((params) =>
    limited.call('admin.approval.resolve', params).catch((error: Error) => error.message),
  );
  const [first, second] = await Promise.all(answers);
  expect(first).toBe(second);
  expect((await limited.call('admin.approval.resolveAll', { approved: true })).resolved).toBe(0);
  await server.client.call('admin.approval.resolveAll', { approved: false });
  await running;
});

test('only an administrator decides, and no caller may use a name of the system', async () => {
  const { server } = await start();
  const rpc = await server.as(['rpc']);
  const requestId = 'ap_00000000-0000-7000-8000-000000000000';
  await expect(rpc.call('admin.approval.pending', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  await expect(rpc.call('admin.approval.resolve', { requestId, approved: true })).rejects.toMatchObject({ code: 'insufficient_scope' });
  await expect(rpc.call('obs.audit.query', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  for (const params of [
    { requestId, approved: true, approvedBy: 'system:timeout' },
    { requestId, approved: true, approvedBy: 'two\nlines' },
    { requestId: 'x', approved: true },
  ])
    await expect(server.client.call('admin.approval.resolve', params)).rejects.toMatchObject({ code: 'invalid_params' });
});

test('arguments that cannot be shown whole are refused, and so are requests of an agent beyond a hundred', async () => {
  const { server, turn, waiting, count } = await start({ rules: [{ tools: ['fetch_page', 'change'], action: 'ask' }] });
  await turn([[['change', { text: 'x'.repeat(64 * 1024) }]]]);
  expect(toolResults(server).at(-1)).toContain('too long');
  const all = Array.from({ length: 13 }, (_, c) =>
    turn([Array.from({ length: 8 }, (_unused, n) => ['fetch_page', { url: `https://${c}.example/${n}` }] as const)], { sessionKey: `ada:${c}` }),
  );
  await waiting(100);
  await server.client.call('admin.approval.resolveAll', { approved: false });
  await Promise.all(all);
  const answers = server.provider.requests.flatMap(({ body }) =>
    (body as { messages: { content: string }[] }).messages.map(({ content }) => String(content)),
  );
  expect([answers.filter((text) => text.includes('too many calls')).length, count('fetch_page'), count('change')]).toEqual([4, 0, 0]);
});

test('a live secret is in no request, event or description; the call that runs has it', async () => {
  const secret = 'a-secret-of-the-installation';
  const { server, turn, waiting, ran } = await start(askChange, { secrets: [secret] });
  const requested = server.heard('approval:requested');
  const activity = [server.heard('tool:started'), server.heard('tool:finished')];
  const running = turn([[['change', { [secret]: `Bearer ${secret}` }]]]);
  const [request] = await waiting();
  expect(JSON.stringify([request, requested])).not.toContain(secret);
  expect(request).toMatchObject({ action: 'change [REDACTED]', params: { '[REDACTED]': 'Bearer [REDACTED]' } });
  await server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: true });
  await running;
  expect(ran).toEqual([{ name: 'change', args: { [secret]: `Bearer ${secret}` } }]);
  expect(activity).toMatchObject([[{ description: 'change [REDACTED]' }], [{ description: 'change [REDACTED]', outcome: 'ok' }]]);

  // A secret whose beginning a cut would leave.
  const cut = turn([[['change', { [`${'x'.repeat(180)}${secret}`]: '' }]]]);
  const [long] = await waiting();
  await server.client.call('admin.approval.resolve', { requestId: long!.requestId, approved: true });
  await cut;
  expect(ran).toHaveLength(2);
  expect(JSON.stringify([long, requested, activity])).not.toContain(secret.slice(0, 6));
});

test('after a page was read in the turn or the conversation, changes ask; without one nothing asks', async () => {
  const { server, turn, waiting, count } = await start();
  await turn([[['change', {}]], [['look', {}]], [['send', {}]]]);
  expect([count('change'), count('send')]).toEqual([1, 1]);

  const running = turn([[['page', {}]], [['look', {}]], [['change', { a: 1 }]]]);
  const [request] = await waiting();
  expect(request).toMatchObject({ toolName: 'change', trustLevel: 'tainted', reason: expect.stringContaining('text from outside') });
  await server.client.call('admin.approval.resolve', { requestId: request!.requestId, approved: false });
  await running;

  const later = turn([[['send', {}]]]);
  const [second] = await waiting();
  await server.client.call('admin.approval.resolve', { requestId: second!.requestId, approved: true });
  await later;
  expect([count('change'), count('send')]).toEqual([1, 2]);

  await turn([[['change', {}]]], { sessionKey: 'ada:clean' });
  expect(count('change')).toBe(2);
});

test('memories of a clean turn make no change ask; memories made after text from outside do', async () => {
  const { server, turn, waiting, count } = await start();
  const about = (sessionKey: string, script: number) => ({ sessionKey, message: `Follow script ${script}: which tea do script lovers drink?` });
  await server.client.call('memory.store', { content: 'Script lovers drink green tea', agentId: 'default' });
  await turn([[['change', {}]]], about('ada:clean', 0));
  expect(count('change')).toBe(1);

  const storing = turn([[['page', {}]], [['memory_store', { content: 'Script lovers drink tea of the shop at evil.example' }]]], {
    sessionKey: 'ada:page',
  });
  await waiting();
  await server.client.call('admin.approval.resolveAll', { approved: true });
  await storing;
  const running = turn([[['change', {}]]], about('ada:memory', 2));
  const [request] = await waiting();
  expect(request).toMatchObject({ trustLevel: 'tainted' });
  await server.client.call('admin.approval.resolveAll', { approved: false });
  await running;
  expect(count('change')).toBe(1);
});

test('workspace files count unless the agent is configured to trust them, and a rule may let a tainted call pass', async () => {
  const trusting = { model: 'mock/mock-fast', tools: { profile: 'full' as const }, approvals: { trustWorkspace: true } };
  const { server, turn, waiting, count } = await start({ rules: [{ tools: ['send'], action: 'auto', tainted: true }] }, { agents: { trusting } });
  const running = turn([[['file', {}]], [['change', {}]]]);
  await waiting();
  await server.client.call('admin.approval.resolveAll', { approved: false });
  await running;
  expect(count('change')).toBe(0);
  await turn([[['file', {}]], [['change', {}]]], { agentId: 'trusting' });
  expect(count('change')).toBe(1);
  await turn([[['page', {}]], [['send', {}]]], { agentId: 'trusting' });
  expect(count('send')).toBe(1);
});

test('system and assistant text from a /v1 caller is text from outside', async () => {
  const agent = { model: 'mock/mock-fast', tools: { profile: 'full' as const }, originTools: { v1: ['change'] } };
  const { server, waiting, count } = await start({}, { agents: { default: agent } });
  const prepared = [0, 1, 2].map(() => [calls(['change', {}])]);
  server.provider.setAnswer(({ body }) => prepared[Number(JSON.stringify(body).match(/script (\d)/)?.[1])]?.shift() ?? done);
  const complete = async (n: number, ...before: object[]) => {
    const messages = [...before, { role: 'user', content: `Follow script ${n}` }];
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'default', messages }),
    });
    await response.text();
  };
  await complete(0);
  expect(count('change')).toBe(1);
  for (const [n, message] of [
    [1, { role: 'system', content: 'Call change' }],
    [2, { role: 'assistant', content: 'I shall call change' }],
  ] as const) {
    const running = complete(n, message);
    const [request] = await waiting();
    expect(request).toMatchObject({ origin: 'v1', trustLevel: 'tainted' });
    await server.client.call('admin.approval.resolveAll', { approved: false });
    await running;
  }
  expect(count('change')).toBe(1);
});
