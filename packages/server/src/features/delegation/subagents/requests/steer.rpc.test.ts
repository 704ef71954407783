import { createClient } from '@gatehouse/client';
import { createStepClock, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { answerBy, asked, call } from '../run/testing/delegation-model.ts';

const agents = { default: { model: 'mock/mock-fast', tools: { profile: 'supervisor' as const } } };

test('with injection a message reaches the run at its next step, fenced, at most once in two seconds over all sockets', async () => {
  await using server = await startTestServer({ config: { agents, security: { agentToAgent: { steerInject: true } } } });
  const ada = await server.as(['rpc']);
  let answered = Promise.withResolvers<void>();
  answerBy(server.provider, ({ question, messages }) => {
    if (question.includes('Look at the tests')) return { text: 'Steered.' };
    const first = messages.some(({ text }) => text.includes('By a tool')) ? call('ls', {}) : { text: 'Not steered.' };
    return { ...first, after: answered.promise };
  });
  // At the next step after a tool call, and when the run would have ended.
  for (const task of ['By a tool', 'At the end']) {
    answered = Promise.withResolvers<void>();
    const before = server.provider.served();
    const { runId, conversationRef } = await ada.call('session.spawn', { task });
    await expect.poll(() => server.provider.served()).toBe(before + 1);
    using first = server.socket(ada.token);
    using second = server.socket(ada.token);
    const params = { target: runId, message: 'Look at the tests first.' };
    const answers = await Promise.allSettled([first.call('subagent.steer', params), second.call('subagent.steer', params)]);
    expect(answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))).toEqual([{ status: 'steered_inject', runId }]);
    expect(answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as unknown] : []))).toMatchObject([{ code: 'rate_limited' }]);
    answered.resolve();
    const { results } = await ada.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 });
    expect(results[0]?.completion?.summary).toMatch(/Steered\.$/);
    const { messages } = await ada.call('session.history', { conversationRef });
    const steer = messages.filter(({ content }) => content.includes('Look at the tests first.'));
    expect(steer.map(({ role }) => role)).toEqual(['user']);
    expect(steer[0]?.content).toMatch(/^\[The requester of[^\n]*\]\n<<<UNTRUSTED-TEXT [0-9a-f]{32} provenance="clean" source="steer">>>\n/);
  }
  // Only a running run accepts one.
  const [ended] = (await ada.call('subagent.list', {})).runs;
  await expect(ada.call('subagent.steer', { target: ended?.runId ?? '', message: 'x' })).rejects.toMatchObject({ code: 'precondition_failed' });
});

test('without injection the run is stopped and replaced by one with the message as its task', async () => {
  const clock = createStepClock();
  await using server = await startTestServer({ clock, config: { agents } });
  const over = server.heard('session:sub_agent_lifecycle_ended');
  const ada = await server.as(['rpc']);
  answerBy(server.provider, ({ question }) => (question.includes('Look at the tests') ? { text: 'Steered.' } : { hang: true }));
  const { runId, rootRunId } = await ada.call('session.spawn', { task: 'x', model: 'mock/mock-other' });
  await expect.poll(() => (clock.advance(10), server.provider.served())).toBe(1);
  const steered = await ada.call('subagent.steer', { target: runId, message: 'Look at the tests.' });
  expect(steered).toMatchObject({ status: 'steered', oldRunId: runId });
  if (steered.status !== 'steered') throw new Error('not respawned');
  // The replacement is as recent as the message.
  await expect(ada.call('subagent.steer', { target: steered.newRunId, message: 'again' })).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(ada.call('subagent.steer', { target: runId, message: 'again' })).rejects.toMatchObject({ code: 'precondition_failed' });
  await expect.poll(() => (clock.advance(10), over.map(({ announced }) => announced))).toEqual(['none', 'inbox']);
  const { runs } = await server.client.call('subagent.list', {});
  expect(runs.map((run) => [run.runId, run.status, run.rootRunId, run.completion?.endReason])).toEqual([
    [steered.newRunId, 'completed', rootRunId, 'completed'],
    [runId, 'failed', rootRunId, 'killed'],
  ]);
  const requests = server.provider.requests.map(({ body }) => body as { readonly model: string });
  expect(requests.map(({ model }) => model)).toEqual(['mock-other', 'mock-other']);
  expect(asked(requests[1]).question).toMatch(/<<<UNTRUSTED-TEXT [0-9a-f]{32} provenance="clean" source="steer">>>\nLook at the tests\.\n<<<END/);
  expect((await ada.call('inbox.list', {})).messages).toHaveLength(1);
});

test('a narrower token of the same person may stop a run of a wider one, but not steer it', async () => {
  await using server = await startTestServer({ config: { agents } });
  answerBy(server.provider, () => ({ hang: true }));
  const make = async (id: string, scopes: ('rpc' | 'admin')[], limit: { readonly agents?: string[] } = {}) => {
    const { secret } = await server.client.call('tokens.create', { id, person: 'ada', scopes, ...limit });
    return createClient({ url: server.url, token: secret }).call;
  };
  const wide = await make('wide', ['rpc', 'admin']);
  const narrow = [await make('agents', ['rpc', 'admin'], { agents: ['default'] }), await make('scopes', ['rpc'])];
  for (const steerInject of [false, true]) {
    await server.client.call('config.set', { path: 'security.agentToAgent.steerInject', value: steerInject, confirm: true });
    const { runId } = await wide('session.spawn', { task: 'x' });
    for (const call of narrow)
      await expect(call('subagent.steer', { target: runId, message: 'Do mine' })).rejects.toMatchObject({
        code: 'denied',
        message: expect.stringMatching(/^message: /),
      });
    const steered = await wide('subagent.steer', { target: runId, message: 'Do ours' });
    const last = 'newRunId' in steered ? steered.newRunId : steered.runId;
    expect(await narrow[0]?.('subagent.kill', { target: last })).toMatchObject({ killed: true });
  }
});
