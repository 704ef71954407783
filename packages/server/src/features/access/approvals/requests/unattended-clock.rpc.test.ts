import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock, startTestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createBell, createObeyingModel, follow, page } from '../testing/obeying-model.ts';

const dayMs = 86_400_000;
const yearsMs = 1095 * dayMs;
const startMs = Date.UTC(2026, 8, 21, 12);
let homeDir: string;
let bells = 0;
let clock: StepClock;
beforeEach(async () => {
  bells = 0;
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-clock-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

async function startAt(atMs: number) {
  clock = createStepClock(atMs);
  const model = createObeyingModel();
  const full = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };
  const server = await startTestServer({
    clock,
    homeDir,
    tools: [page, createBell(() => (bells += 1))],
    config: { approvals: { rules: [{ tools: ['write'], match: { path: 'ask/*' }, action: 'ask' }] }, agents: { default: full } },
  });
  server.provider.setAnswer(({ body }) => model.answer(body));
  const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;
  return { ...server, model, pending, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 30_000) {
    clock.advance(30_000);
    await new Promise((done) => setTimeout(done, 4));
  }
}

test.each([
  ['ahead', yearsMs],
  ['behind', -yearsMs],
])('one start with the clock three years %s ends no wait for an approval: job and sub-agent run once when they are approved', async (_, offMs) => {
  let runId = '';
  {
    await using before = await startAt(startMs);
    const schedule = { kind: 'in', seconds: 1 } as const;
    await before.client.call('cron.add', { name: 'job', schedule, payload: { kind: 'agent_turn', message: follow(['page', {}], ['bell', {}]) } });
    await pass(60_000);
    ({ runId } = await before.client.call('session.spawn', {
      task: follow(['write', { path: 'ask/a.txt', content: 'x' }], ['sessions_spawn', { task: 'Sing', toolGroups: [] }]),
      toolGroups: ['files', 'sessions'],
    }));
    await expect.poll(async () => (clock.advance(1_000), await before.pending())).toHaveLength(2);
  }
  {
    await using wrong = await startAt(startMs + offMs);
    await pass(300_000);
    expect(await wrong.pending()).toHaveLength(2);
    expect(bells).toBe(0);
  }
  await using right = await startAt(startMs + 3_600_000);
  expect(await right.pending()).toHaveLength(2);
  await right.client.call('admin.approval.resolveAll', { approved: true });
  const settled = async () => {
    clock.advance(5_000);
    const { runs } = await right.client.call('cron.runs', { jobName: 'job' });
    return [
      runs[0]?.status,
      (await right.client.call('session.run_status', { runId })).status,
      bells,
      existsSync(join(homeDir, 'workspaces/default/ask/a.txt')),
    ];
  };
  await expect.poll(settled).toEqual(['completed', 'completed', 1, true]);
  // Its lease let it delegate.
  expect((await right.client.call('subagent.list', {})).runs).toHaveLength(2);
});

test('an approval does not outlive its time because it was granted under a clock that was ahead', async () => {
  {
    await using wrong = await startAt(startMs + yearsMs);
    const turn = wrong.client.call('agent.execute', { message: follow(['page', {}], ['bell', {}]) });
    await expect.poll(wrong.pending).toHaveLength(1);
    await wrong.client.call('admin.approval.resolveAll', { approved: true });
    await turn;
    expect(bells).toBe(1);
  }
  await using right = await startAt(startMs);
  void right.client.call('agent.execute', { message: follow(['page', {}], ['bell', {}]) }).catch(() => {});
  await expect.poll(right.pending).toHaveLength(1);
  expect(bells).toBe(1);
  clock.advance(600_000);
  await expect.poll(right.pending).toHaveLength(0);
});

test('a clock that is set years ahead while a run works does not end its lease', async () => {
  await using server = await startAt(startMs);
  server.provider.setAnswer(({ body }) => {
    if (clock.now() < startMs + yearsMs) clock.step(yearsMs);
    return server.model.answer(body);
  });
  const { runId } = await server.client.call('session.spawn', {
    task: follow(['sessions_spawn', { task: 'Sing', toolGroups: [] }]),
    toolGroups: ['sessions'],
  });
  await expect.poll(async () => (await server.client.call('session.run_status', { runId })).status).toBe('completed');
  expect((await server.client.call('subagent.list', {})).runs).toHaveLength(2);
});
