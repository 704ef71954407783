import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Call, createBell, createObeyingModel, follow, page } from '../testing/obeying-model.ts';

let bells = 0;
const bell = createBell(() => (bells += 1));
const model = createObeyingModel();

let server: TestServer;
let clock: StepClock;
const full = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };
// Sub-agents of a program are offered only file tools.
const rules = [{ tools: ['write'], match: { path: 'ask/*' }, action: 'ask' as const }];
const config = {
  approvals: { rules },
  webhooks: {
    mappings: [
      { id: 'hook', messageTemplate: '{{text}}', sessionKey: 'one' },
      { id: 'other', messageTemplate: '{{text}}', sessionKey: 'two' },
    ],
  },
  agents: {
    default: { ...full, originTools: { webhook: ['bell'] } },
    worker: full,
    beating: { ...full, heartbeat: { enabled: true, intervalMs: 86_400_000 } },
    refusing: { ...full, approvals: { unattended: 'refuse' as const } },
  },
};
let homeDir: string;
async function open(): Promise<void> {
  server = await startTestServer({ clock, tools: [page, bell], config, homeDir });
  server.provider.setAnswer(({ body }) => model.answer(body));
}
beforeEach(() => {
  model.asks = [];
  bells = 0;
});
beforeAll(async () => {
  clock = createStepClock(Date.UTC(2026, 8, 21, 12));
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  await open();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

const fileOf = (name: string, agentId = 'default') => join(homeDir, 'workspaces', agentId, name);
const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
const ring: Call = ['bell', {}];
const write = (path = 'a.txt'): Call => ['write', { path, content: 'written' }];
const resolve = async (approved: boolean) => server.client.call('admin.approval.resolveAll', { approved });

/** Resolves with the first request once this many are pending. */
async function asked(count = 1) {
  await expect.poll(pending).toHaveLength(count);
  const [request] = await pending();
  if (request === undefined) throw new Error('nothing waits');
  return request;
}

let jobs = 0;
async function startJob(message: string, agentId = 'default') {
  const name = `job ${(jobs += 1)}`;
  await server.client.call('cron.add', {
    name,
    agentId,
    schedule: { kind: 'every', everyMs: 86_400_000 * 365 },
    payload: { kind: 'agent_turn', message },
  });
  await server.client.call('cron.run', { jobName: name });
  return async () => (await server.client.call('cron.runs', { jobName: name })).runs[0];
}

test('the call of a job waits for a person, holds nothing meanwhile, and runs once when it is approved', async () => {
  const run = await startJob(follow(['page', {}], ['bell', {}], write()));
  const first = await asked();
  expect(first).toMatchObject({ toolName: 'bell', origin: 'cron', timeoutMs: 86_400_000 });
  await expect
    .poll(run)
    .toMatchObject({ status: 'dispatched', waiting: { kind: 'approval', approvalId: first.requestId, untilMs: first.expiresAt } });
  const [listed] = (await server.client.call('run.list', {})).runs;
  expect(listed).toMatchObject({ origin: 'cron', waiting: { approvalId: first.requestId } });
  const messages = (await server.client.call('inbox.list', {})).messages;
  expect(messages[0]).toMatchObject({ level: 'alert', text: expect.stringContaining(first.requestId) as unknown });
  expect(bells).toBe(0);
  clock.advance(3_600_000);
  await resolve(true);
  const second = await asked();
  expect(second).toMatchObject({ toolName: 'write' });
  expect(bells).toBe(1);
  await resolve(true);
  await expect.poll(run).toMatchObject({ status: 'completed' });
  expect(readFileSync(fileOf('a.txt'), 'utf8')).toBe('written');
  expect(bells).toBe(1);
  expect((await run())?.waiting).toBeUndefined();
});

test('when denied or undecided in time, a job continues without the call and reports how many effects were refused', async () => {
  const run = await startJob(follow(['page', {}], ['bell', {}], write('never.txt')));
  await asked();
  await resolve(false);
  await asked();
  clock.advance(86_400_000);
  await expect.poll(run).toMatchObject({ status: 'completed', effectsRefused: 2 });
  expect(bells).toBe(0);
  expect(existsSync(fileOf('never.txt'))).toBe(false);
  const texts = (await server.client.call('inbox.list', {})).messages.map(({ text }) => text);
  expect(texts.at(0)).toContain('completed, 2 effects refused');
  expect(await pending()).toEqual([]);
});

test('an agent that may not wait is refused the call, and its runs report it', async () => {
  const run = await startJob(follow(['page', {}], write()), 'refusing');
  await expect.poll(run).toMatchObject({ status: 'completed', effectsRefused: 1 });
  expect(model.results.at(-1)).toContain('approvals.unattended: refuse');
  const { runId } = await server.client.call('session.spawn', { agent: 'refusing', task: follow(write('ask/a.txt')) });
  const { results: ends } = await server.client.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 });
  expect(ends).toMatchObject([{ status: 'completed', completion: { effectsRefused: 1 } }]);
  expect(await pending()).toEqual([]);
});

test('a pending request survives restarts, and earlier calls do not run again', async () => {
  const run = await startJob(follow(['page', {}], [ring, write('b.txt')]));
  expect(await asked()).toMatchObject({ toolName: 'bell' });
  await resolve(true);
  expect(await asked()).toMatchObject({ toolName: 'write' });
  expect(bells).toBe(1);
  await server[Symbol.asyncDispose]();
  await open();
  expect(await asked()).toMatchObject({ toolName: 'write' });
  await expect.poll(run).toMatchObject({ waiting: { kind: 'approval' } });
  await resolve(true);
  await expect.poll(run).toMatchObject({ status: 'completed' });
  expect(bells).toBe(1);
  expect(readFileSync(fileOf('b.txt'), 'utf8')).toBe('written');
  expect(await run()).not.toHaveProperty('effectsRefused');

  // It expires while no daemon runs.
  const late = await startJob(follow(['page', {}], ring));
  await asked();
  clock.advance(10_000_000);
  await server[Symbol.asyncDispose]();
  // A daemon that was off for more than a week doubts the clock.
  clock.advance(80_000_000);
  await open();
  await expect.poll(late).toMatchObject({ status: 'completed', effectsRefused: 1 });
  expect(bells).toBe(1);
});

test('messages to a conversation whose run waits run after it', async () => {
  await startJob(follow(['page', {}], ['bell', {}]));
  const { conversationRef } = await asked();
  const send = (message: string) => server.client.call('agent.execute', { message, conversationRef });
  model.asks = [];
  const first = send('first');
  await expect.poll(async () => (await server.client.call('session.status', { conversationRef })).queued).toBe(1);
  const second = send('second');
  expect(model.asks).toEqual([]);
  await resolve(true);
  await Promise.all([first, second]);
  expect(model.asks.map((text) => (text.includes('bell') ? 'job' : text))).toEqual(['job', 'first', 'second']);
});

test('a waiting sub-agent frees its slot, and its clock stops', async () => {
  const spawn = (task: string) => server.client.call('session.spawn', { task });
  const waits = await spawn(follow(write('ask/a.txt')));
  const { requestId } = await asked();
  const status = () => server.client.call('session.run_status', { runId: waits.runId });
  await expect.poll(status).toMatchObject({ status: 'running', waiting: { kind: 'approval', approvalId: requestId } });
  const [listed] = (await server.client.call('run.list', {})).runs;
  expect(listed).toMatchObject({ rootRunId: waits.rootRunId, waiting: { approvalId: requestId } });
  clock.advance(12 * 3_600_000);
  const other = await spawn(follow());
  await server.client.call('subagent.wait', { runIds: [other.runId], timeoutMs: 10_000 });
  await resolve(true);
  await expect.poll(status).toMatchObject({ status: 'completed' });
  expect(readFileSync(fileOf('ask/a.txt'), 'utf8')).toBe('written');
});

test('a node of a graph waits without using up its time or that of the graph', async () => {
  const { graphId } = await server.client.call('graph.execute', {
    nodes: [{ node_id: 'ring', task: follow(['page', {}], ['bell', {}]), timeout_ms: 60_000 }],
    timeout_ms: 120_000,
  });
  const { requestId } = await asked();
  const graph = () => server.client.call('graph.status', { graphId });
  await expect.poll(graph).toMatchObject({ status: 'running', nodes: { ring: { waiting: { kind: 'approval', approvalId: requestId } } } });
  // This write comes after that of the wait, at whose end the limits of the graph pause.
  await server.as(['*']);
  clock.advance(12 * 3_600_000);
  await resolve(false);
  await expect.poll(graph).toMatchObject({ status: 'completed', nodes: { ring: { effectsRefused: 1 } } });
  expect(bells).toBe(0);
});

test('a file that changes while its call waits makes it another call, which is asked about again', async () => {
  const put = (content: string) => server.client.call('workspace.writeFile', { agentId: 'default', filePath: 'song.txt', content });
  await put('la la');
  const run = await startJob(follow(['page', {}], ['bell', { song: 'song.txt' }]));
  const first = await asked();
  await put('boo');
  await resolve(true);
  await expect.poll(async () => (await pending()).map(({ digest }) => digest === first.digest)).toEqual([false]);
  await resolve(false);
  await expect.poll(run).toMatchObject({ status: 'completed', effectsRefused: 1 });
  expect(bells).toBe(0);
});

test('a denial holds after a change of a file too, and repeated changes do not ask for ever', async () => {
  let changes = 0;
  const change = () => server.client.call('workspace.writeFile', { agentId: 'default', filePath: 'song.txt', content: `${(changes += 1)}` });
  await change();
  const denied = await startJob(follow(['page', {}], ['bell', { song: 'song.txt' }]));
  await asked();
  await change();
  await resolve(false);
  await expect.poll(denied).toMatchObject({ status: 'completed', effectsRefused: 1 });

  const run = await startJob(follow(['page', {}], ['bell', { song: 'song.txt' }]));
  for (let round = 0, before = ''; round < 3; round += 1) {
    await expect.poll(async () => (await pending()).map(({ requestId }) => requestId === before)).toEqual([false]);
    before = (await asked()).requestId;
    await change();
    await resolve(true);
  }
  await expect.poll(run).toMatchObject({ status: 'completed', effectsRefused: 1 });
  expect(model.results.join('\n')).toContain('was changed while the call waited for its approval, repeatedly');
  expect(bells).toBe(0);
});

const stops: readonly (readonly [
  string,
  (about: { agentId: string; conversationRef: string; rootRunId: string; runId?: string }) => Promise<unknown>,
])[] = [
  ['run.kill', ({ rootRunId }) => server.client.call('run.kill', { rootRunId })],
  ['agents.suspend', ({ agentId }) => server.client.call('agents.suspend', { agentId })],
  ['session.reset', ({ conversationRef }) => server.client.call('session.reset', { conversationRef })],
  ['session.delete', ({ conversationRef }) => server.client.call('session.delete', { conversationRef })],
];
/** Returns the waiting root run; undefined until the turn has stopped, which is after its request is announced. */
const waitingRoot = async () => (await server.client.call('run.list', {})).runs.find(({ waiting }) => waiting !== undefined)?.rootRunId;
test.each(stops)('%s denies the pending call of a job and leaves its conversation free', async (name, stop) => {
  const run = await startJob(follow(['page', {}], ['bell', {}]), 'worker');
  const { conversationRef } = await asked();
  await expect.poll(waitingRoot).toBeDefined();
  await stop({ agentId: 'worker', conversationRef, rootRunId: (await waitingRoot()) ?? '' });
  await expect.poll(pending).toEqual([]);
  if (name === 'agents.suspend') {
    await expect.poll(run).toMatchObject({ waiting: { kind: 'agent' } });
    await server.client.call('agents.resume', { agentId: 'worker' });
  }
  await expect
    .poll(async () => {
      clock.advance(1000);
      return run();
    })
    .toMatchObject(name === 'agents.suspend' || name === 'session.reset' ? { status: 'completed', effectsRefused: 1 } : { status: 'aborted' });
  expect(bells).toBe(0);
  expect((await server.client.call('run.list', {})).runs.filter(({ waiting }) => waiting !== undefined)).toEqual([]);
  // The stopped run has stored nothing.
  if (name !== 'session.delete' && name !== 'run.kill') await server.client.call('agent.execute', { message: 'still there?', conversationRef });
});

test('killing a sub-agent or its root ends its wait with it', async () => {
  for (const kill of ['subagent.kill', 'run.kill'] as const) {
    const { runId, rootRunId } = await server.client.call('session.spawn', { task: follow(write('ask/never.txt')) });
    await asked();
    await (kill === 'run.kill' ? server.client.call(kill, { rootRunId }) : server.client.call(kill, { target: runId }));
    await expect.poll(pending).toEqual([]);
    expect(await server.client.call('session.run_status', { runId })).toMatchObject({ status: 'failed', completion: { endReason: 'killed' } });
  }
  expect(existsSync(fileOf('ask/never.txt'))).toBe(false);
});

test('the wait of a revoked token ends, and its work does not continue', async () => {
  const ada = await server.as(['*']);
  const { runId } = await ada.call('session.spawn', { task: follow(write('ask/never.txt')) });
  await asked();
  await server.client.call('tokens.revoke', { id: ada.tokenId });
  await expect.poll(pending).toEqual([]);
  await expect.poll(async () => (await server.client.call('session.run_status', { runId })).status).toBe('failed');
  expect(existsSync(fileOf('ask/never.txt'))).toBe(false);
});

test('webhooks and heartbeats wait likewise, and a removed job leaves nothing to decide', async () => {
  const { deliveryId } = await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: follow(['page', {}], ring) }, run: true });
  const { requestId } = await asked();
  const delivery = async () => (await server.client.call('webhooks.deliveries', {})).deliveries.find((one) => one.deliveryId === deliveryId);
  await expect.poll(delivery).toMatchObject({ waiting: { kind: 'approval', approvalId: requestId } });
  await resolve(false);
  await expect.poll(delivery).toMatchObject({ state: 'done', effectsRefused: 1 });

  await server.client.call('workspace.writeFile', { agentId: 'beating', filePath: 'HEARTBEAT.md', content: `- ${follow(['page', {}], ring)}` });
  await server.client.call('heartbeat.trigger', { agentId: 'beating' });
  await expect
    .poll(async () => {
      clock.advance(1000);
      return (await pending())[0]?.origin;
    })
    .toBe('heartbeat');
  await server.client.call('workspace.writeFile', { agentId: 'beating', filePath: 'HEARTBEAT.md', content: '' });
  await resolve(true);
  await expect.poll(() => bells).toBe(1);
  await expect.poll(async () => (await server.client.call('run.list', {})).runs.filter(({ state }) => state === 'active')).toEqual([]);

  await startJob(follow(['page', {}], ring));
  await asked();
  await expect.poll(async () => (await server.client.call('run.list', {})).runs[0]?.waiting?.kind).toBe('approval');
  await server.client.call('cron.remove', { jobName: `job ${jobs}` });
  await expect.poll(pending).toEqual([]);
  await expect.poll(async () => (await server.client.call('run.list', {})).runs.filter(({ state }) => state === 'active')).toEqual([]);
  expect(bells).toBe(1);
});

test('deliveries queued behind a waiting run take no slot, and each runs once after it', { timeout: 90_000 }, async () => {
  const hook = async (mapping: string, text: string) =>
    (await server.client.call('webhooks.test', { mapping, payload: { text }, run: true })).deliveryId;
  await hook('hook', follow(['page', {}], ring));
  await asked();
  const behind: (string | null)[] = [];
  // More than may run at once.
  for (let n = 0; n < 70; n += 1) behind.push(await hook('hook', `Number ${n}.`));
  const other = await hook('other', 'Hello.');
  // Those that find the lane crowded retry a little later.
  const states = async () => {
    clock.advance(5000);
    return new Map((await server.client.call('webhooks.deliveries', { limit: 100 })).deliveries.map((one) => [one.deliveryId, one]));
  };
  await expect.poll(async () => (await states()).get(other ?? '')?.state).toBe('done');
  await expect.poll(async () => (await states()).get(behind[0] ?? '')?.waiting?.kind).toBe('conversation');
  model.asks = [];
  await resolve(true);
  // One after another.
  await expect.poll(async () => [...(await states()).values()].filter(({ state }) => state !== 'done'), { timeout: 60_000 }).toEqual([]);
  const numbers = model.asks.flatMap((text) => /Number (\d+)\./.exec(text)?.[1] ?? []).map(Number);
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 70 }, (_, n) => n));
  expect(bells).toBe(1);
});

test('an approval given as its run is stopped is used by no other run and leaves its conversation free', async () => {
  const { deliveryId } = await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: follow(['page', {}], ring) }, run: true });
  const { conversationRef } = await asked();
  await expect.poll(waitingRoot).toBeDefined();
  const rootRunId = (await waitingRoot()) ?? '';
  await Promise.all([resolve(true), server.client.call('run.kill', { rootRunId })]);
  const state = async (id = deliveryId) =>
    (await server.client.call('webhooks.deliveries', {})).deliveries.find((one) => one.deliveryId === id)?.state;
  await expect.poll(() => state()).not.toBe('accepted');
  const rung = bells;
  clock.advance(2 * 86_400_000);
  const second = await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: follow(['page', {}], ring) }, run: true });
  await asked();
  expect(bells).toBe(rung);
  await resolve(false);
  await expect.poll(() => state(second.deliveryId)).toBe('done');

  const run = await server.client.call('session.spawn', { task: follow(write('ask/killed.txt')) });
  await asked();
  await Promise.all([resolve(true), server.client.call('subagent.kill', { target: run.runId }).catch(() => {})]);
  await expect.poll(async () => (await server.client.call('session.run_status', { runId: run.runId })).status).not.toBe('running');
  await server.client.call('session.reset', { conversationRef: run.conversationRef });

  // During an approval, too, a deletion does not wait for the next one.
  await server.client.call('webhooks.test', {
    mapping: 'hook',
    payload: { text: follow(['page', {}], ring, ['bell', { song: 'again' }]) },
    run: true,
  });
  await asked();
  await Promise.all([resolve(true), server.client.call('session.delete', { conversationRef })]);
  await expect.poll(pending).toEqual([]);
});
