import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createBell, createObeyingModel, follow, page } from '../../access/approvals/testing/obeying-model.ts';

let server: TestServer;
let homeDir: string;
let model = createObeyingModel();
async function open(): Promise<void> {
  const full = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };
  server = await startTestServer({ tools: [page, createBell(() => 1)], config: { agents: { default: full, spare: full } }, homeDir });
  server.provider.setAnswer(({ body }) => (JSON.stringify(body).includes('Stay') ? { hang: true } : model.answer(body)));
}
beforeEach(() => {
  model = createObeyingModel();
});
beforeAll(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  await open();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});

const recordsOf = async (ref: string) => (await server.client.call('obs.trace.get', { ref })).records;
/** Returns the newest turn of an agent. */
const newest = async (agentId: string) =>
  (await server.client.call('obs.trace.search', { where: `kind = turn and agent = ${agentId}`, limit: 1 })).rows[0]?.traceId ?? '';

test('a turn whose token is revoked is kept as cancelled, and the token reads nothing', async () => {
  const ada = await server.as(['rpc', 'admin']);
  const before = server.provider.requests.length;
  const running = ada.call('agent.execute', { message: 'Stay', sessionKey: 'ada:gone' }).then(() => 'answered', String);
  await expect.poll(() => server.provider.requests.length).toBe(before + 1);
  await server.client.call('tokens.revoke', { id: ada.tokenId });
  expect(await running).not.toBe('answered');
  const traceId = await newest('default');
  expect(await recordsOf(traceId)).toMatchObject([
    { outcome: 'cancelled', endReason: 'aborted', error: { kind: 'aborted' }, principalId: `token:${ada.tokenId}` },
  ]);
  expect(await server.client.call('obs.explain', { traceId })).toMatchObject({ traceId, likelyRootCause: { code: 'turn_aborted' } });
  for (const [method, params] of [
    ['obs.trace.get', { ref: traceId }],
    ['obs.explain', { traceId }],
    ['obs.trace.search', { traceId }],
  ] as const)
    await expect(ada.call(method, params)).rejects.toMatchObject({ code: 'unauthenticated' });
});

test('a turn whose agent is suspended is kept with the outcome and the reason', async () => {
  const before = server.provider.requests.length;
  const running = server.client.call('agent.execute', { agentId: 'spare', message: 'Stay', sessionKey: 'ada:spare' }).then(() => 'answered', String);
  await expect.poll(() => server.provider.requests.length).toBe(before + 1);
  await server.client.call('agents.suspend', { agentId: 'spare' });
  await running;
  const traceId = await newest('spare');
  expect(await recordsOf(traceId)).toMatchObject([{ outcome: 'cancelled', endReason: 'aborted', error: { kind: 'aborted' } }]);
});

test('a turn that outside text reaches while it runs is kept as tainted', async () => {
  const message = follow(['page', {}]);
  const { traceId } = await server.client.call('agent.execute', { message, sessionKey: 'ada:page' });
  expect(await recordsOf(traceId)).toMatchObject([{ outcome: 'ok', toolCalls: 1, facts: { tainted: true } }]);
});

test('a turn that is approved after a restart is one trace of all its parts, with each call counted once', async () => {
  await server.client.call('cron.add', {
    name: 'rings',
    schedule: { kind: 'every', everyMs: 86_400_000 },
    payload: { kind: 'agent_turn', message: follow(['page', {}], ['bell', {}]) },
  });
  await server.client.call('cron.run', { jobName: 'rings' });
  await expect.poll(async () => (await server.client.call('admin.approval.pending', {})).requests.length).toBe(1);
  const waiting = async () => (await server.client.call('obs.trace.search', { where: 'outcome = waiting' })).rows;
  await expect.poll(waiting).toHaveLength(1);
  const traceId = (await waiting())[0]?.traceId ?? '';
  await server[Symbol.asyncDispose]();
  await open();
  await server.client.call('admin.approval.resolveAll', { approved: true });
  await expect.poll(async () => (await server.client.call('cron.runs', { jobName: 'rings' })).runs[0]?.status).toBe('completed');
  const parts = (await recordsOf(traceId)).filter(({ kind }) => kind === 'turn');
  expect(parts.map((part) => [part.traceId, part.outcome, part.toolCalls, part.facts['resumed']])).toEqual([
    [traceId, 'waiting', 1, undefined],
    [traceId, 'ok', 1, true],
  ]);
  const ran = parts.flatMap(({ steps }) => steps).filter(({ kind, outcome }) => kind === 'tool' && outcome === 'ok');
  expect(ran.map(({ name }) => name)).toEqual(['page', 'bell']);
  const report = await server.client.call('obs.explain', { traceId });
  expect(report).toMatchObject({ traceId, likelyRootCause: null, toolStats: { page: { ok: 1, failed: 0 }, bell: { ok: 1, failed: 0 } } });
});
