import { eventKinds, events } from '@gatehouse/contract';
import { createStepClock, type FakeAnswer, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { answerBy, call } from '../features/delegation/subagents/run/testing/delegation-model.ts';
import { openEvents } from '../gateway/testing/open-events.ts';
import { findProgram } from '../kernel/find-program.ts';
import { isOfDelegation } from '../gateway/testing/kinds-of-delegation.ts';

const hasJail = findProgram('bwrap') !== undefined && findProgram('prlimit') !== undefined;
const nodes = [
  { node_id: 'a', task: 'Node one.', type_id: 'agent' as const, type_config: { agent: 'default' } },
  { node_id: 'b', task: 'Node two.', depends_on: ['a'] },
];

test('every kind of delegation happens, and reaches an admin with the payload that is declared', async () => {
  const clock = createStepClock();
  await using server = await startTestServer({
    clock,
    config: {
      autonomy: { guards: { denialBreaker: 1 } },
      security: { agentToAgent: { subagentContext: { maxChildrenPerAgent: 1, maxQueuedPerAgent: 1 } } },
      agents: {
        default: { model: 'mock/mock-fast', tools: { profile: 'full' } },
        meek: { model: 'mock/mock-fast', tools: { profile: 'full' }, autonomy: { profile: 'assistant' } },
      },
    },
  });
  using stream = await openEvents(server.url, server.token, { lastEventId: '0' });
  const heard = (kind: string) => stream.frames.filter((frame) => frame.event === kind);
  answerBy(server.provider, ({ question, results }): FakeAnswer => {
    if (question.includes('Hang')) return { hang: true };
    if (results.length > 0) return { text: 'Done.' };
    if (question.includes('Spawn')) return call('sessions_spawn', { task: 'Quick.' });
    if (question.includes('Define')) return call('pipeline', { action: 'define', nodes });
    if (question.includes('Script')) return call('orchestrate', { script: 'console.log(1)' });
    return { text: 'Yes.' };
  });
  const says = (message: string, agentId = 'default') =>
    server.client.call('agent.execute', { message, agentId, sessionKey: { userId: 'ada', channelId: message } }).catch(() => undefined);
  const spawn = (task: string) => server.client.call('session.spawn', { task });

  const first = await spawn('Hang one');
  const second = await spawn('Hang two');
  await expect(spawn('Too much')).rejects.toMatchObject({ code: 'precondition_failed' });
  await server.client.call('lease.revoke', { rootRunId: second.rootRunId });
  await server.client.call('run.kill', { rootRunId: first.rootRunId });
  await says('Spawn');
  await says('Spawn', 'meek');
  await says('Define');
  if (hasJail) await says('Script');
  const partner = await says('Partner');
  const conversationRef = partner?.conversationRef ?? '';
  await server.client.call('session.send', { conversationRef, text: 'Hello', mode: 'ping-pong', maxTurns: 1 });
  await server.client.call('graph.execute', { nodes, node_progress: true });
  await expect.poll(() => (clock.advance(10), heard('graph:completed').length)).toBe(1);

  const due = eventKinds.filter((kind) => isOfDelegation(kind) && (hasJail || kind !== 'orchestrate:run_summary'));
  // Tasks that ended long ago leave the list.
  await expect.poll(() => (clock.advance(300_000), due.filter((kind) => heard(kind).length === 0))).toEqual([]);
  for (const kind of due)
    for (const { data, id } of heard(kind)) {
      expect(events[kind].payload.safeParse(data), kind).toMatchObject({ success: true });
      expect(id === undefined, kind).toBe(events[kind].transient === true);
    }
});
