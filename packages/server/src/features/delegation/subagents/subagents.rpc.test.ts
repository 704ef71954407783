import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: {
      gateway: { drainTimeoutMs: 100 },
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } }, other: { model: 'mock/mock-fast' } },
      security: { agentToAgent: { subagentContext: { maxChildrenPerAgent: 2, maxQueuedPerAgent: 1 } } },
    },
  });
});
afterEach(async () => {
  server.provider.setAnswer(undefined);
  for (const { runId, status } of (await server.client.call('subagent.list', {})).runs)
    if (status === 'running' || status === 'queued') await server.client.call('subagent.kill', { target: runId }).catch(endedMeanwhile);
});
afterAll(() => server[Symbol.asyncDispose]());

function endedMeanwhile(error: unknown): void {
  if ((error as { code?: string }).code !== 'precondition_failed') throw error;
}

const unknownId = 'sr_00000000-0000-7000-8000-000000000000';
const statusOf = async (runId: string) => (await server.client.call('session.run_status', { runId })).status;

test('a run of a token is stored, runs, ends once and is announced in the inbox', async () => {
  const spawned = server.heard('session:sub_agent_spawned');
  const started = server.heard('session:sub_agent_spawn_started');
  const completed = server.heard('session:sub_agent_completed');
  const over = server.heard('session:sub_agent_lifecycle_ended');
  server.provider.queue({ text: 'Nothing is missing.', usage: { input: 100, output: 10 } });
  const run = await server.client.call('session.spawn', { task: 'Read the README and list what is missing.', async: false });
  expect(run).toMatchObject({ async: true, inProgress: true, noteType: 'background_running' });
  const { results } = await server.client.call('subagent.wait', { runIds: [run.runId, run.runId], timeoutMs: 5_000 });
  expect(results).toMatchObject([{ runId: run.runId, status: 'completed', completion: { endReason: 'completed', summary: 'Nothing is missing.' } }]);
  expect(await server.client.call('session.run_status', { runId: run.runId })).toMatchObject({
    status: 'completed',
    completion: { summary: 'Nothing is missing.' },
    telemetry: { finishReason: 'stop', stepsExecuted: 1, tokensUsedTotal: 110, costTotal: 0.00012 },
  });
  await expect.poll(() => over).toMatchObject([{ runId: run.runId, announced: 'inbox' }]);
  expect([spawned.length, started.length, completed.length]).toEqual([1, 1, 1]);
  expect(completed).toMatchObject([{ success: true, tokensUsed: 110 }]);
  const { messages } = await server.client.call('inbox.list', {});
  expect(messages).toMatchObject([{ source: 'subagent', level: 'info', conversationRef: run.conversationRef }]);
  expect(messages[0]?.text).toContain('Nothing is missing.');
  expect(JSON.stringify(await server.client.call('usage.report', { groupBy: ['operation'] }))).toContain('"subagent"');
});

test('the same operation id is the same run, and a different task under it is refused', async () => {
  const params = { task: 'Once.', operationId: 'op-1' };
  const first = await server.client.call('session.spawn', params);
  const [again, ...more] = await Promise.all(Array.from({ length: 5 }, () => server.client.call('session.spawn', params)));
  expect(again).toMatchObject({ runId: first.runId, rootRunId: first.rootRunId, deduped: true, existingRunId: first.runId });
  expect(more.every(({ runId }) => runId === first.runId)).toBe(true);
  await expect(server.client.call('session.spawn', { ...params, task: 'Twice.' })).rejects.toMatchObject({ code: 'conflict' });
  // The id belongs to the caller: it means nothing to another token.
  const ada = await server.as(['rpc']);
  expect((await ada.call('session.spawn', params)).runId).not.toBe(first.runId);
});

test('runs and queue are limited; one more is refused, and a queued run begins when a slot is free', async () => {
  const queuedEvents = server.heard('session:sub_agent_spawn_queued');
  const rejected = server.heard('session:sub_agent_spawn_rejected');
  server.provider.setAnswer(() => ({ hang: true }));
  const runs = [];
  for (let n = 0; n < 3; n += 1) runs.push(await server.client.call('session.spawn', { task: `Task ${n}` }));
  expect(runs.map(({ queued }) => queued)).toEqual([undefined, undefined, true]);
  expect(queuedEvents).toMatchObject([{ runId: runs[2]?.runId, queuePosition: 1, activeChildren: 2, maxChildren: 2 }]);
  await expect(server.client.call('session.spawn', { task: 'Too much' })).rejects.toMatchObject({
    code: 'precondition_failed',
    message: expect.stringContaining('maxChildrenPerAgent 2'),
  });
  expect(rejected).toMatchObject([{ reason: 'queue_full', requesterRef: null }]);
  const [first, , third] = runs.map(({ runId }) => runId);
  await expect.poll(() => statusOf(first ?? '')).toBe('running');
  expect(await server.client.call('session.run_status', { runId: third ?? '' })).toMatchObject({ status: 'queued' });
  // Another caller has separate slots.
  const ada = await server.as(['rpc']);
  expect((await ada.call('session.spawn', { task: 'Hers' })).queued).toBeUndefined();
  await server.client.call('subagent.kill', { target: first ?? '' });
  await expect.poll(() => statusOf(third ?? '')).toBe('running');
});

test('invalid requests are refused with the parameter name, and nothing is stored', async () => {
  const { total } = await server.client.call('subagent.list', {});
  const refused = (params: object) => server.client.call('session.spawn', { task: 'x', ...params });
  await expect(refused({ agent: 'nobody' })).rejects.toMatchObject({ code: 'not_found' });
  await expect(refused({ model: 'none/none' })).rejects.toMatchObject({ code: 'precondition_failed', message: expect.stringContaining('model') });
  await expect(refused({ toolGroups: ['nonsense'] })).rejects.toMatchObject({
    code: 'invalid_params',
    message: expect.stringContaining('toolGroups'),
  });
  await expect(refused({ requiredTools: ['web_fetch'] })).rejects.toMatchObject({
    code: 'precondition_failed',
    message: 'requiredTools: the sub-agent would not have web_fetch',
  });
  await expect(refused({ requiredTools: ['read'], toolGroups: ['files'] })).resolves.toMatchObject({ inProgress: true });
  await expect(refused({ announceChannelType: 'gateway' })).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(refused({ announceChannelType: 'telegram', announceChannelId: '1' })).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(refused({ announceChannelType: 'gateway', announceChannelId: `cv_${'0'.repeat(43)}` })).rejects.toMatchObject({ code: 'not_found' });
  await expect(refused({ maxSteps: 0 })).rejects.toMatchObject({ code: 'invalid_params' });
  const bound = await server.as(['rpc'], { agents: ['other'] });
  await expect(bound.call('session.spawn', { task: 'x', agent: 'default' })).rejects.toMatchObject({ code: 'not_found' });
  expect((await server.client.call('subagent.list', {})).total).toBe(total + 1);
});

test('an end is announced in the conversation that the token names, if it owns it', async () => {
  const ada = await server.as(['rpc']);
  const { conversationRef } = await ada.call('agent.execute', { message: 'Hello.' });
  const over = server.heard('session:sub_agent_lifecycle_ended');
  server.provider.setAnswer(({ body }) => ({ text: JSON.stringify(body).includes('Sub-agents that you asked') ? 'Heard.' : 'The report.' }));
  const announce = { announceChannelType: 'gateway', announceChannelId: conversationRef };
  const { runId } = await ada.call('session.spawn', { task: 'x', ...announce });
  // Runs of other tests may end in the meantime.
  await expect.poll(() => over.filter((one) => one.runId === runId)).toMatchObject([{ announced: 'turn' }]);
  expect((await ada.call('session.history', {})).messages.at(-1)?.content).toBe('Heard.');
  // Neither another token nor an admin announces anything in somebody else's conversation.
  const bob = await server.as(['rpc']);
  await expect(bob.call('session.spawn', { task: 'x', ...announce })).rejects.toMatchObject({ code: 'not_found', message: 'Conversation not found' });
  await expect(server.client.call('session.spawn', { task: 'x', ...announce })).rejects.toMatchObject({ message: 'Conversation not found' });
  // A conversation that is deleted by then is not created again: the inbox is used.
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Late.', after: answered.promise }));
  const late = await ada.call('session.spawn', { task: 'y', ...announce });
  await server.client.call('session.delete', { conversationRef });
  answered.resolve();
  await expect.poll(() => over.at(-1)).toMatchObject({ runId: late.runId, announced: 'inbox' });
  expect((await ada.call('inbox.list', {})).messages[0]?.text).toContain('Late.');
});

test('E1–E4: foreign runs look like unknown runs', async () => {
  const ada = await server.as(['rpc']);
  const bob = await server.as(['rpc']);
  server.provider.queue({ text: 'secret words' });
  const { runId } = await ada.call('session.spawn', { task: 'secret task' });
  await ada.call('subagent.wait', { runIds: [runId], timeoutMs: 5_000 });

  const { results } = await bob.call('subagent.wait', { runIds: [runId, unknownId, 'no id'], timeoutMs: 10_000 });
  expect(results).toEqual([runId, unknownId, 'no id'].map((id) => ({ runId: id, status: 'denied_unknown' })));
  for (const target of [runId, unknownId]) {
    const refusal = { code: 'not_found', message: `Unknown run ID: ${target}` };
    await expect(bob.call('subagent.kill', { target })).rejects.toMatchObject(refusal);
    await expect(bob.call('subagent.steer', { target, message: 'x' })).rejects.toMatchObject(refusal);
  }
  await expect(bob.call('session.run_status', { runId })).rejects.toMatchObject({ code: 'not_found', message: `Unknown run ID: ${runId}` });
  expect(await bob.call('subagent.list', {})).toEqual({ runs: [], total: 0 });

  const { runs } = await ada.call('subagent.list', {});
  expect(runs).toHaveLength(1);
  expect(JSON.stringify(runs)).not.toContain('secret');
  // The requester gets the result from a wait as well as from a status call.
  expect(await ada.call('session.run_status', { runId })).toMatchObject({ completion: { summary: 'secret words' } });
  expect((await ada.call('subagent.wait', { runIds: [runId], timeoutMs: 0 })).results[0]?.completion?.summary).toBe('secret words');
  expect((await server.client.call('subagent.list', { agentId: 'default' })).runs.find((run) => run.runId === runId)).toMatchObject({
    task: 'secret task',
  });

  await expect(ada.call('subagent.list', { agentId: 'default' })).rejects.toMatchObject({
    code: 'invalid_params',
    message: 'agentId: only an admin may name it',
  });
  await expect(ada.call('subagent.list', { rootRunId: 'x' })).rejects.toMatchObject({ code: 'invalid_params' });
  for (const recentMinutes of [0, 10_081])
    await expect(ada.call('subagent.list', { recentMinutes })).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(ada.call('subagent.wait', { timeoutMs: 300_001 })).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(ada.call('subagent.wait', { runIds: Array.from({ length: 33 }, (_, n) => `${n}`) })).rejects.toMatchObject({ code: 'invalid_params' });
});

test('a wait with 0 returns at once, ends at its timeout, and without ids waits for all running runs', async () => {
  const ada = await server.as(['rpc']);
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Done.', after: answered.promise }));
  const first = await ada.call('session.spawn', { task: 'one' });
  const second = await ada.call('session.spawn', { task: 'two' });
  expect((await ada.call('subagent.wait', { runIds: [first.runId], timeoutMs: 0 })).results).toEqual([{ runId: first.runId, status: 'timeout' }]);
  expect((await ada.call('subagent.wait', { runIds: [first.runId], timeoutMs: 1 })).results).toEqual([{ runId: first.runId, status: 'timeout' }]);
  const waited = ada.call('subagent.wait', {});
  // Asked after the wait, so that it has begun.
  await ada.call('subagent.list', {});
  answered.resolve();
  const { results } = await waited;
  expect(new Map(results.map(({ runId, status }) => [runId, status]))).toEqual(
    new Map([
      [first.runId, 'completed'],
      [second.runId, 'completed'],
    ]),
  );
  expect((await ada.call('subagent.wait', {})).results).toEqual([]);
});

test('E8: a pause refuses new runs; running and queued runs continue', async () => {
  const rejected = server.heard('session:sub_agent_spawn_rejected');
  const ada = await server.as(['rpc']);
  await expect(ada.call('subagent.pause', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  server.provider.setAnswer(() => ({ text: 'Done.', delayMs: 100 }));
  const { runId } = await ada.call('session.spawn', { task: 'before' });
  expect(await server.client.call('subagent.pause', {})).toEqual({ paused: true, acceptingSpawns: true, resetsOnRestart: true, changed: true });
  expect((await server.client.call('subagent.pause', {})).changed).toBe(false);
  await expect(ada.call('session.spawn', { task: 'during' })).rejects.toMatchObject({
    code: 'precondition_failed',
    message: expect.stringContaining('paused'),
  });
  expect(rejected).toMatchObject([{ reason: 'paused' }]);
  expect((await ada.call('subagent.wait', { runIds: [runId], timeoutMs: 5_000 })).results).toMatchObject([{ status: 'completed' }]);
  expect(await server.client.call('subagent.status', {})).toEqual({ paused: true, acceptingSpawns: true, resetsOnRestart: true });
  expect(await server.client.call('subagent.resume', {})).toMatchObject({ paused: false, changed: true });
  const { rows } = await server.client.call('obs.audit.query', { actionType: 'subagent.pause' });
  expect(rows).toHaveLength(1);
});

test('a token reads the text of its runs in run_status and wait; a parent history that it lacks is refused by parameter name', async () => {
  const ada = await server.as(['rpc']);
  server.provider.setAnswer(() => ({ text: 'Forty-two.' }));
  const { runId } = await ada.call('session.spawn', { task: 'Count.' });
  const [waited] = (await ada.call('subagent.wait', { runIds: [runId], timeoutMs: 5_000 })).results;
  const status = await ada.call('session.run_status', { runId });
  expect(waited).toMatchObject({ status: 'completed', completion: { summary: 'Forty-two.' } });
  expect(status).toMatchObject({ status: 'completed', completion: waited?.status === 'completed' ? waited.completion : {} });
  const eve = await server.as(['rpc']);
  await expect(eve.call('session.run_status', { runId })).rejects.toMatchObject({ code: 'not_found' });
  await expect(ada.call('session.spawn', { task: 'x', includeParentHistory: 'summary' })).rejects.toMatchObject({
    code: 'invalid_params',
    message: expect.stringContaining('includeParentHistory'),
  });
  expect(await ada.call('session.spawn', { task: 'x', includeParentHistory: 'none' })).toMatchObject({ async: true });
});
