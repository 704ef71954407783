import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { answerBy, call } from '../run/testing/delegation-model.ts';

const full = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };

/** Lets the default agent make a call and returns the result; a sub-agent that the call started makes the same call. */
async function tryOut(
  agentToAgent: NonNullable<NonNullable<NonNullable<Parameters<typeof startTestServer>[0]>['config']>['security']>['agentToAgent'],
  args: object,
  agents: NonNullable<NonNullable<Parameters<typeof startTestServer>[0]>['config']>['agents'] = { default: full, other: full, third: full },
) {
  await using server = await startTestServer({ config: { agents, security: { agentToAgent } } });
  const rejected = server.heard('session:sub_agent_spawn_rejected');
  const answers: string[] = [];
  answerBy(server.provider, ({ question, results }) => {
    if (question.includes('Sub-agents that you asked for')) return { text: 'Thanks.' };
    if (results.length === 0) return call('sessions_spawn', args);
    answers.push(results[0] ?? '');
    return question.includes('# Task')
      ? { text: 'Tried.' }
      : { ...call('subagents', { action: 'wait', timeoutMs: 10_000 }), ...(results.length > 1 && { toolCalls: [], text: 'Done.' }) };
  });
  await server.client.call('agent.execute', { message: 'Try.' });
  return { answers, reasons: rejected.map(({ reason }) => reason), stored: (await server.client.call('subagent.list', {})).total };
}

test('sub-agents can be nested up to the limit', async () => {
  const { answers, reasons, stored } = await tryOut({ subagentContext: { maxSpawnDepth: 1 } }, { task: 'x', toolGroups: ['sessions'] });
  expect(reasons).toEqual(['depth_exceeded']);
  expect(answers.some((text) => text.includes('Sub-agents may be nested 1 deep'))).toBe(true);
  expect(stored).toBe(1);
});

test('an agent starts only the agents that the configuration allows', async () => {
  expect(await tryOut({ allowAgents: ['other'] }, { task: 'x', agent: 'third', toolGroups: [] })).toMatchObject({
    reasons: ['not_allowed'],
    stored: 0,
  });
  expect(await tryOut({ allowAgents: ['other'] }, { task: 'x', agent: 'other', toolGroups: [] })).toMatchObject({ reasons: [], stored: 1 });
  expect(await tryOut({ enabled: false }, { task: 'x', toolGroups: [] })).toMatchObject({ reasons: ['not_allowed'], stored: 0 });
});

test('an agent without the capability starts nothing', async () => {
  const agents = { default: { ...full, autonomy: { profile: 'assistant' as const } } };
  const { answers, stored } = await tryOut({}, { task: 'x' }, agents);
  expect(answers[0]).toContain('Capability denied: orch:spawn');
  expect(stored).toBe(0);
});

test('a sub-agent is refused when all slots are taken and the queue is disabled', async () => {
  await using server = await startTestServer({
    config: { security: { agentToAgent: { subagentContext: { maxChildrenPerAgent: 1, maxQueuedPerAgent: 0 } } } },
  });
  const rejected = server.heard('session:sub_agent_spawn_rejected');
  server.provider.setAnswer(() => ({ hang: true }));
  await server.client.call('session.spawn', { task: 'x' });
  await expect(server.client.call('session.spawn', { task: 'y' })).rejects.toMatchObject({ code: 'precondition_failed' });
  expect(rejected).toMatchObject([{ reason: 'children_exceeded' }]);
});

test('work of an untrusted origin is delegated with its authority at every depth', async () => {
  await using server = await startTestServer({
    config: { agents: { default: { ...full, originTools: { v1: ['sessions_spawn'] } } }, gateway: { compat: { tools: 'agent' } } },
  });
  const over = server.heard('session:sub_agent_lifecycle_ended');
  const offered: (readonly string[])[] = [];
  answerBy(server.provider, ({ question, results, tools }) => {
    if (question.includes('# Task')) {
      offered.push(tools);
      return { text: 'Done.' };
    }
    return results.length === 0 ? call('sessions_spawn', { task: 'x', toolGroups: ['files', 'shell', 'sessions'] }) : { text: 'Asked.' };
  });
  await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'Go.' }] }),
  });
  // The requesting conversation is not kept, so the inbox is notified.
  await expect.poll(() => over).toMatchObject([{ announced: 'inbox' }]);
  expect(offered).toHaveLength(1);
  expect(offered[0]).toContain('read');
  expect(offered[0]).toContain('sessions_spawn');
  expect(offered[0]?.filter((name) => ['write', 'edit', 'exec', 'apply_patch'].includes(name))).toEqual([]);
});
