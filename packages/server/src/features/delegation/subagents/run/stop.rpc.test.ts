import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, sql, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { answerBy, call } from './testing/delegation-model.ts';

const config = { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' as const } } } };

test('E6: a kill stops a run with everything that it delegated, and nothing continues afterwards', async () => {
  await using server = await startTestServer({ config });
  const over = server.heard('session:sub_agent_lifecycle_ended');
  const completed = server.heard('session:sub_agent_completed');
  let spawnsAfter = 0;
  let isKilled = false;
  answerBy(server.provider, ({ question, results }) => {
    if (isKilled) spawnsAfter += 1;
    const level = /Level (\d)/.exec(question)?.[1] ?? '';
    if (level === '3') return { hang: true };
    if (results.length === 0) return call('sessions_spawn', { task: `Level ${Number(level) + 1}`, toolGroups: ['sessions'] });
    return call('subagents', { action: 'wait', timeoutMs: 60_000 });
  });
  const { runId, conversationRef } = await server.client.call('session.spawn', { task: 'Level 1', toolGroups: ['sessions'] });
  const runs = async () => (await server.client.call('subagent.list', {})).runs;
  await expect.poll(async () => (await runs()).filter(({ status }) => status === 'running').length).toBe(3);
  // Two model calls of each waiting run, one of the last.
  await expect.poll(() => server.provider.served()).toBe(5);
  isKilled = true;
  expect(await server.client.call('subagent.kill', { target: runId })).toEqual({ killed: true, runId });
  const ended = await runs();
  expect(ended.map(({ status, completion }) => [status, completion?.endReason])).toEqual(Array.from({ length: 3 }, () => ['failed', 'killed']));
  // Its finished steps stay readable; the interrupted call is not among them.
  const { messages } = await server.client.call('session.history', { conversationRef });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  expect(messages.at(-1)?.content).toBe('[Ended before it was done: killed. What is above was done.]');
  const { tokensUsed } = await server.client.call('session.status', { conversationRef });
  const { totals } = await server.client.call('usage.report', { groupBy: ['agent'] });
  const conversations = await Promise.all(
    (await server.client.call('session.list', { kind: 'sub-agent' })).sessions.map((one) =>
      server.client.call('session.status', { conversationRef: one.conversationRef }),
    ),
  );
  expect(tokensUsed.totalTokens).toBeGreaterThan(0);
  expect(conversations.reduce((sum, one) => sum + one.tokensUsed.totalTokens, 0)).toBe(totals.inputTokens + totals.outputTokens);
  expect(completed.map(({ success }) => success)).toEqual([false, false, false]);
  // A caller that kills its own run needs no announcement.
  expect(over.map(({ announced }) => announced)).toEqual(['none', 'none', 'none']);
  await expect
    .poll(async () => (await server.client.call('run.list', {})).runs.map(({ state, runs: counts }) => [state, counts.open, counts.failed]))
    .toEqual([['failed', 0, 3]]);
  expect(await runs()).toHaveLength(3);
  expect(spawnsAfter).toBe(0);
  await expect(server.client.call('subagent.kill', { target: runId })).rejects.toMatchObject({ code: 'precondition_failed' });
  expect((await server.client.call('obs.audit.query', { actionType: 'subagent.kill' })).rows).toHaveLength(1);
});

test('killing the root stops its runs, and nothing of it begins any more', async () => {
  await using server = await startTestServer({ config });
  server.provider.setAnswer(() => ({ hang: true }));
  const ada = await server.as(['rpc']);
  const { runId, rootRunId } = await ada.call('session.spawn', { task: 'x' });
  const status = async () => server.client.call('session.run_status', { runId });
  await expect.poll(async () => (await status()).status).toBe('running');
  await server.client.call('run.kill', { rootRunId });
  expect(await status()).toMatchObject({ status: 'failed', completion: { endReason: 'killed' } });
  // The requester did not stop it itself.
  await expect
    .poll(async () => (await ada.call('inbox.list', {})).messages.map(({ level, text }) => [level, text.slice(0, 9)]))
    .toEqual([['alert', 'Sub-agent']]);
});

test('the watchdog stops runs that take too long, and queued runs time out', async () => {
  const clock = createStepClock();
  await using server = await startTestServer({
    clock,
    config: {
      ...config,
      security: { agentToAgent: { subagentContext: { maxChildrenPerAgent: 1, queueTimeoutMs: 5_000, maxRunTimeoutMs: 20_000 } } },
    },
  });
  // It has acted, so the run itself takes too long.
  server.provider.queue({ toolCalls: [{ id: 'c1', name: 'read', arguments: '{"path":"x"}' }] });
  server.provider.setAnswer(() => ({ hang: true }));
  const first = await server.client.call('session.spawn', { task: 'stuck' });
  const second = await server.client.call('session.spawn', { task: 'waits' });
  const status = (runId: string) => server.client.call('session.run_status', { runId });
  await expect.poll(async () => (clock.advance(10), (await status(first.runId)).status)).toBe('running');
  await expect.poll(async () => (clock.advance(500), (await status(second.runId)).status)).toBe('failed');
  expect(await status(second.runId)).toMatchObject({ completion: { endReason: 'failed', errorKind: 'queue_timeout' } });
  expect((await status(first.runId)).status).toBe('running');
  await expect.poll(async () => (clock.advance(2_000), (await status(first.runId)).status)).toBe('failed');
  expect(await status(first.runId)).toMatchObject({ completion: { endReason: 'watchdog_timeout', errorKind: 'watchdog_timeout' } });
});

test('a run whose provider sends nothing until the timeout waits for the provider', async () => {
  const clock = createStepClock();
  await using server = await startTestServer({
    clock,
    config: {
      agents: { default: { model: 'mock/mock-fast', modelTimeoutMs: 600_000 } },
      security: { agentToAgent: { subagentContext: { maxRunTimeoutMs: 20_000 } } },
    },
  });
  server.provider.setAnswer(() => ({ hang: true }));
  const silent = await server.client.call('session.spawn', { task: 'silent' });
  const status = (runId: string) => server.client.call('session.run_status', { runId });
  // The provider is called repeatedly.
  await expect.poll(() => (clock.advance(1_000), server.provider.served()), { interval: 5 }).toBeGreaterThanOrEqual(3);
  expect(await status(silent.runId)).toMatchObject({ status: 'running' });
  server.provider.setAnswer(() => ({ text: 'Done.' }));
  await expect.poll(async () => (clock.advance(1_000), (await status(silent.runId)).status), { interval: 5 }).toBe('completed');
});

test('the sweep ends a run that nothing else ends, and announces it', async () => {
  const clock = createStepClock();
  await using server = await startTestServer({ clock, config });
  server.provider.setAnswer(() => ({ hang: true }));
  const { runId } = await server.client.call('session.spawn', { task: 'lost' });
  const status = () => server.client.call('session.run_status', { runId });
  await expect.poll(async () => (clock.advance(10), (await status()).status)).toBe('running');
  // State after a fault: the work is gone, and the running process can write nothing.
  await sql(server.homeDir, "UPDATE work_item SET state = 'aborted', fence = fence + 1, ended_at_ms = 1 WHERE kind = 'subagent'");
  await expect.poll(async () => (clock.advance(60_000), (await status()).status)).toBe('failed');
  expect(await status()).toMatchObject({ completion: { endReason: 'ghost_sweep', errorKind: 'ghost_sweep' } });
  await expect
    .poll(async () => (clock.advance(100), (await server.client.call('inbox.list', {})).messages.map(({ level }) => level)))
    .toEqual(['alert']);
});

test('runs that ended long ago are removed from the list', async () => {
  const clock = createStepClock();
  await using server = await startTestServer({ clock, config });
  const archived = server.heard('session:sub_agent_archived');
  const { runId } = await server.client.call('session.spawn', { task: 'x' });
  const found = async () => (await server.client.call('subagent.list', { recentMinutes: 10_080 })).runs.map(({ status }) => status);
  await expect.poll(async () => (clock.advance(100), await found())).toEqual(['completed']);
  await expect.poll(async () => (clock.advance(300_000), archived.map((event) => event.runId))).toEqual([runId]);
  expect(await found()).toEqual([]);
});

test('a restart opens a paused gate and resumes running and queued runs', async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-gate-'));
  try {
    const settings = {
      ...config,
      gateway: { drainTimeoutMs: 20, tokens: [{ id: 'owner', secret: 'x'.repeat(40), scopes: ['*' as const] }] },
      security: { agentToAgent: { subagentContext: { maxChildrenPerAgent: 1 } } },
    };
    const runIds: string[] = [];
    {
      await using server = await startTestServer({ homeDir, config: settings });
      server.provider.setAnswer(() => ({ hang: true }));
      for (const task of ['one', 'two']) runIds.push((await server.client.call('session.spawn', { task })).runId);
      await expect.poll(() => server.provider.served()).toBe(1);
      await server.client.call('subagent.pause', {});
      const draining = server.server.drain();
      expect(await server.client.call('subagent.resume', {}).catch(() => ({ acceptingSpawns: false }))).toMatchObject({ acceptingSpawns: false });
      await draining;
    }
    await using server = await startTestServer({ homeDir, config: settings });
    expect(await server.client.call('subagent.status', {})).toMatchObject({ paused: false, acceptingSpawns: true });
    const { results } = await server.client.call('subagent.wait', { runIds, timeoutMs: 10_000 });
    expect(results.map(({ status, completion }) => [status, completion?.endReason])).toEqual([
      ['completed', 'completed'],
      ['completed', 'completed'],
    ]);
    expect(server.provider.served()).toBe(2);
  } finally {
    await rm(homeDir, { recursive: true, force: true });
  }
});
