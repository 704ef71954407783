import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createBell, createObeyingModel, follow, page } from '../testing/obeying-model.ts';

// Work pending an approval while the authority under which it was accepted changes.

let bells = 0;
const bell = createBell(() => (bells += 1));
const model = createObeyingModel();
const ring = follow(['page', {}], ['bell', {}]);
// Every test creates its own agents, so that none changes those of another.
const full = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };

let server: TestServer;
let clock: StepClock;
let homeDir: string;
async function open(): Promise<void> {
  server = await startTestServer({
    clock,
    homeDir,
    tools: [page, bell],
    config: {
      agents: { default: full },
      approvals: { rules: [{ tools: ['write'], match: { path: 'ask/*' }, action: 'ask' }] },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', agentId: 'hooked', sessionKey: 'one' }] },
    },
  });
  server.provider.setAnswer(({ body }) => model.answer(body));
}
beforeAll(async () => {
  clock = createStepClock(Date.UTC(2026, 8, 21, 12));
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  await open();
  await server.client.call('agents.create', { agentId: 'hooked', config: { ...full, originTools: { webhook: ['bell', 'page'] } } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});
beforeEach(() => {
  bells = 0;
});
// Clean up after a failed test, which would affect the next one.
afterEach(() => resolve(false));

let agents = 0;
async function newAgent(): Promise<string> {
  const agentId = `agent-${(agents += 1)}`;
  await server.client.call('agents.create', { agentId, config: full });
  return agentId;
}

const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
const resolve = (approved: boolean) => server.client.call('admin.approval.resolveAll', { approved });

/** Resolves with the only request once it and its work are pending. */
async function asked() {
  await expect.poll(pending).toHaveLength(1);
  await expect.poll(async () => (await listed())?.waiting?.kind).toBe('approval');
  const [request] = await pending();
  if (request === undefined) throw new Error('nothing waits');
  return request;
}

/** Returns the active run that was started last. */
const listed = async () => (await server.client.call('run.list', { state: 'active' })).runs[0];
/** After a stop nobody can approve any more, not even under the earlier id. */
async function undecidable(requestId: string): Promise<void> {
  await expect.poll(pending).toEqual([]);
  await expect(server.client.call('admin.approval.resolve', { requestId, approved: true })).rejects.toMatchObject({
    code: expect.stringMatching(/conflict|not_found/) as unknown,
  });
}

const hourMs = 3_600_000;
async function addJob(agentId: string, everyMs: number, message = ring) {
  const jobName = `job of ${agentId}`;
  await server.client.call('cron.add', { name: jobName, agentId, schedule: { kind: 'every', everyMs }, payload: { kind: 'agent_turn', message } });
  return { jobName, runs: async () => (await server.client.call('cron.runs', { jobName })).runs };
}
async function startJob(agentId: string, message = ring) {
  const { jobName, runs } = await addJob(agentId, 10_000 * hourMs, message);
  await server.client.call('cron.run', { jobName });
  return async () => (await runs())[0];
}

test('lease.revoke ends a waiting sub-agent: neither its call nor any other runs', async () => {
  const { runId, rootRunId } = await server.client.call('session.spawn', {
    task: follow(['write', { path: 'ask/a.txt', content: 'x' }], ['write', { path: 'b.txt', content: 'x' }]),
  });
  const { requestId } = await asked();
  await server.client.call('lease.revoke', { rootRunId });
  await undecidable(requestId);
  const status = () => server.client.call('session.run_status', { runId });
  await expect.poll(async () => (await status()).status).toBe('failed');
  for (const filePath of ['ask/a.txt', 'b.txt'])
    await expect(server.client.call('workspace.readFile', { agentId: 'default', filePath })).rejects.toMatchObject({ code: 'not_found' });
});

test('agents.delete ends pending work of its agent, and its owner is notified once', async () => {
  const agentId = await newAgent();
  const { runId } = await server.client.call('session.spawn', { agent: agentId, task: follow(['write', { path: 'ask/a.txt', content: 'x' }]) });
  const { requestId } = await asked();
  await server.client.call('agents.delete', { agentId });
  await undecidable(requestId);
  await expect.poll(async () => (await server.client.call('session.run_status', { runId })).status).toBe('failed');

  await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: ring }, run: true });
  const hooked = await asked();
  await server.client.call('agents.delete', { agentId: 'hooked' });
  await undecidable(hooked.requestId);
  const delivery = async () => (await server.client.call('webhooks.deliveries', {})).deliveries[0]?.state;
  // The existence of the agent is checked a few more times.
  await expect.poll(async () => (clock.advance(60_000), await delivery())).toBe('failed');
  expect(bells).toBe(0);
  const alerts = (await server.client.call('inbox.list', {})).messages.filter(({ source, agentId: of }) => source === 'webhook' && of === 'hooked');
  expect(alerts).toHaveLength(1);
});

test('a budget that is spent meanwhile ends the run after its approved call, and is reported as the reason', async () => {
  const agentId = await newAgent();
  const run = await startJob(agentId, follow(['page', {}], ['bell', {}], ['bell', { song: 'again' }]));
  await asked();
  await server.client.call('agents.update', { agentId, config: { budgets: { perDayTokens: 1 } } });
  const served = server.provider.served();
  await resolve(true);
  await expect.poll(run).toMatchObject({ status: 'failed', errorKind: 'budget' });
  expect([bells, server.provider.served() - served]).toEqual([1, 0]);
});

test('a pending request is invisible to a token of other agents; a token without the scope is refused', async () => {
  const agentId = await newAgent();
  const run = await startJob(agentId);
  const { requestId, conversationRef } = await asked();
  const rootRunId = (await listed())?.rootRunId ?? '';
  const other = await server.as(['admin', 'rpc'], { agents: ['default'] });
  expect(await other.call('admin.approval.pending', {})).toEqual({ requests: [], total: 0 });
  expect(await other.call('admin.approval.resolveAll', { approved: true })).toMatchObject({ resolved: 0 });
  expect((await other.call('run.list', { state: 'active' })).runs).toEqual([]);
  expect((await other.call('inbox.list', {})).messages.filter(({ text }) => text.includes(requestId))).toEqual([]);
  const refusalOf = async (refused: Promise<unknown>) => {
    const [{ reason }] = (await Promise.allSettled([refused])) as [PromiseRejectedResult];
    const { code, message } = reason as Error & { readonly code: string };
    return [code, message];
  };
  const decided = (id: string) => refusalOf(other.call('admin.approval.resolve', { requestId: id, approved: true }));
  expect(await decided(requestId)).toEqual(await decided('ap_00000000-0000-4000-8000-000000000000'));
  const stopped = (id: string) => refusalOf(other.call('run.kill', { rootRunId: id }));
  expect(await stopped(rootRunId)).toEqual(await stopped('root-none').then((given) => given.map((text) => text.replace('root-none', rootRunId))));
  await expect(other.call('session.status', { conversationRef })).rejects.toMatchObject({ code: 'not_found' });

  const unscoped = await server.as(['rpc']);
  await expect(unscoped.call('admin.approval.pending', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  await expect(unscoped.call('admin.approval.resolve', { requestId, approved: true })).rejects.toMatchObject({ code: 'insufficient_scope' });
  expect(bells).toBe(0);
  await resolve(true);
  await expect.poll(run).toMatchObject({ status: 'completed' });
  expect(bells).toBe(1);
});

test('lease.revoke of a waiting job ends its run', async () => {
  const run = await startJob(await newAgent());
  const { requestId } = await asked();
  await server.client.call('lease.revoke', { rootRunId: (await listed())?.rootRunId ?? '' });
  await undecidable(requestId);
  await expect.poll(run).toMatchObject({ status: 'aborted', reason: 'The run was stopped' });
  expect(bells).toBe(0);
});

test('a run whose agent was suspended while it waited ends with the token of its owner, and with its agent', async () => {
  const agentId = await newAgent();
  await startJob(agentId);
  await asked();
  const ada = await server.as(['*']);
  const { runId } = await ada.call('session.spawn', { agent: agentId, task: follow(['write', { path: 'ask/a.txt', content: 'x' }]) });
  await expect.poll(pending).toHaveLength(2);
  await server.client.call('agents.suspend', { agentId });
  await expect.poll(pending).toEqual([]);
  await server.client.call('tokens.revoke', { id: ada.tokenId });
  await expect.poll(async () => (await server.client.call('session.run_status', { runId })).status).toBe('failed');
  await server.client.call('agents.delete', { agentId });
  await expect.poll(listed).toBeUndefined();
  expect(bells).toBe(0);
});

test.each(['', ', also after a restart'])('run.kill ends a run whose agent was suspended while it waited%s', async (restart) => {
  const agentId = await newAgent();
  const run = await startJob(agentId);
  const { requestId } = await asked();
  const rootRunId = (await listed())?.rootRunId ?? '';
  await server.client.call('agents.suspend', { agentId });
  await undecidable(requestId);
  await expect.poll(run).toMatchObject({ waiting: { kind: 'agent' } });
  if (restart !== '') {
    await server[Symbol.asyncDispose]();
    await open();
  }
  expect(await listed()).toMatchObject({ rootRunId, agentId });
  expect(await server.client.call('run.kill', { rootRunId })).toEqual({ killed: 2 });
  await expect.poll(run).toMatchObject({ status: 'aborted' });
  expect(await listed()).toBeUndefined();
  const served = server.provider.served();
  await server.client.call('agents.resume', { agentId });
  clock.advance(60_000);
  await server.client.call('agent.execute', { message: 'still there?', agentId });
  expect([bells, server.provider.served() - served]).toEqual([0, 1]);
});

test('a job that waited for an approval keeps its trigger, and occurrences that fell due meanwhile run after it', async () => {
  const agentId = await newAgent();
  const { runs } = await addJob(agentId, hourMs);
  clock.advance(hourMs);
  await asked();
  clock.advance(2 * hourMs + 600_000);
  await resolve(true);
  await expect.poll(async () => (await runs()).at(-1)).toMatchObject({ trigger: 'scheduled', status: 'completed' });
  expect(bells).toBe(1);
  const next = async () => (await runs()).map(({ trigger, status }) => [trigger, status].join(' '));
  await expect.poll(async () => (clock.advance(1_000), await next())).toHaveLength(3);
  await asked();
  await expect.poll(next).toEqual(['catchup dispatched', 'catchup skipped', 'scheduled completed']);
  await resolve(false);
  await expect.poll(async () => (await next())[0]).toBe('catchup completed');
  expect(bells).toBe(1);
});

test('approvals.unattended: refuse, set meanwhile, keeps pending requests open and refuses new ones', async () => {
  const agentId = await newAgent();
  const run = await startJob(agentId, follow(['page', {}], ['bell', {}], ['bell', { song: 'again' }]));
  await asked();
  await server.client.call('agents.update', { agentId, config: { approvals: { unattended: 'refuse' } } });
  // A clock that goes back makes pending work due before it is decided (and jobs too: this test is the last one).
  const since = clock.now();
  clock.step(-600_000);
  clock.advance(60_000);
  await expect.poll(async () => ((await run())?.waiting?.sinceMs ?? since) < since).toBe(true);
  expect(await pending()).toHaveLength(1);
  await resolve(true);
  await expect.poll(run).toMatchObject({ status: 'completed', effectsRefused: 1 });
  expect(bells).toBe(1);
  expect(model.results.at(-1)).toContain('approvals.unattended: refuse');
});
