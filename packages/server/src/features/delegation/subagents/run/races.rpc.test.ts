import { createStepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { answerBy, call, runIdIn } from './testing/delegation-model.ts';

const agents = { default: { model: 'mock/mock-fast', tools: { profile: 'full' as const } } };
type Db = NonNullable<TestServerOptions['db']>;

/** Holds back the result of one query of the runs until it is released; records which operations were done. */
function watched() {
  const state = { armed: false, release: Promise.withResolvers<void>(), reached: Promise.withResolvers<void>(), done: new Set<string>() };
  const db: Db = (inner) =>
    new Proxy(inner, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return async (...given: readonly [{ readonly name: string }, unknown]) => {
          const output: unknown = await Reflect.apply(member, target, given);
          const [operation] = given;
          state.done.add(operation?.name);
          if (operation?.name !== 'subagents.findMany' || !state.armed) return output;
          state.armed = false;
          state.reached.resolve();
          await state.release.promise;
          return output;
        };
      },
    });
  return { db, state };
}

const statuses = async (server: TestServer) => (await server.client.call('subagent.list', {})).runs.map(({ depth, status }) => [depth, status]);

test('a kill that arrives after the end of a run does not affect the work that the run started', async () => {
  const { db, state } = watched();
  await using server = await startTestServer({ db, config: { agents } });
  const [above, below] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  answerBy(server.provider, ({ question, results }) => {
    if (question.includes('Deeper')) return { text: 'From below.', after: below.promise };
    return results.length === 0 ? call('sessions_spawn', { task: 'Deeper', toolGroups: [] }) : { text: 'I delegated it.', after: above.promise };
  });
  const { runId } = await server.client.call('session.spawn', { task: 'Delegate this', toolGroups: ['sessions'] });
  await expect.poll(() => statuses(server)).toContainEqual([2, 'running']);
  state.armed = true;
  const killed = server.client.call('subagent.kill', { target: runId }).catch((error: unknown) => error);
  await state.reached.promise;
  above.resolve();
  await expect.poll(() => statuses(server)).toContainEqual([1, 'completed']);
  state.release.resolve();
  expect(await killed).toMatchObject({ code: 'precondition_failed' });
  expect(await statuses(server)).toContainEqual([2, 'running']);
  below.resolve();
  const announced = async () => (await server.client.call('inbox.list', {})).messages.map(({ text }) => text.split('\n\n').at(-1)).toSorted();
  await expect.poll(announced).toEqual(['From below.', 'I delegated it.']);
  expect((await server.client.call('obs.audit.query', { actionType: 'subagent.kill' })).rows).toEqual([]);
});

test('a wait does not miss an end that occurs during its query', async () => {
  const { db, state } = watched();
  await using server = await startTestServer({ db, config: { agents } });
  const completed = server.heard('session:sub_agent_completed');
  const answered = Promise.withResolvers<void>();
  server.provider.setAnswer(() => ({ text: 'Done.', after: answered.promise }));
  const { runId } = await server.client.call('session.spawn', { task: 'x' });
  state.armed = true;
  const waited = server.client.call('subagent.wait', { runIds: [runId], timeoutMs: 300_000 });
  await state.reached.promise;
  answered.resolve();
  await expect.poll(() => completed.length).toBe(1);
  state.release.resolve();
  expect((await waited).results).toMatchObject([{ runId, status: 'completed' }]);
}, 20_000);

test('a jump of the clock ends no watched run', async () => {
  const clock = createStepClock();
  const { db, state } = watched();
  await using server = await startTestServer({ clock, db, config: { agents } });
  server.provider.setAnswer(() => ({ hang: true }));
  // The sweep is due soon.
  clock.advance(290_000);
  const { runId } = await server.client.call('session.spawn', { task: 'x' });
  const status = async () => (await server.client.call('session.run_status', { runId })).status;
  await expect.poll(async () => (clock.advance(10), await status())).toBe('running');
  clock.step(3_600_000);
  clock.advance(15_000);
  await expect.poll(() => state.done.has('subagents.archive')).toBe(true);
  expect(await server.client.call('session.run_status', { runId })).toMatchObject({ status: 'running' });
});

test('a clock that goes back delays no message to a run', async () => {
  const clock = createStepClock();
  await using server = await startTestServer({ clock, config: { agents, security: { agentToAgent: { steerInject: true } } } });
  server.provider.setAnswer(() => ({ hang: true }));
  const { runId } = await server.client.call('session.spawn', { task: 'x' });
  const status = async () => (await server.client.call('session.run_status', { runId })).status;
  await expect.poll(async () => (clock.advance(10), await status())).toBe('running');
  const steer = () => server.client.call('subagent.steer', { target: runId, message: 'Look.' });
  expect(await steer()).toEqual({ status: 'steered_inject', runId });
  await expect(steer()).rejects.toMatchObject({ code: 'rate_limited' });
  clock.step(-3_600_000);
  expect(await steer()).toEqual({ status: 'steered_inject', runId });
});

test('a run whose requester has ended is steered like any other, and announced where its requester was', async () => {
  await using server = await startTestServer({ config: { agents } });
  answerBy(server.provider, ({ question, results }) => {
    if (question.includes('Instead')) return { text: 'Something else.' };
    if (question.includes('Deeper')) return { hang: true };
    return results.length === 0 ? call('sessions_spawn', { task: 'Deeper', toolGroups: [] }) : { text: `Asked ${runIdIn(results[0] ?? '')}` };
  });
  await server.client.call('session.spawn', { task: 'Delegate this', toolGroups: ['sessions'] });
  await expect
    .poll(async () => (await statuses(server)).toSorted())
    .toEqual([
      [1, 'completed'],
      [2, 'running'],
    ]);
  const [child] = (await server.client.call('subagent.list', {})).runs;
  expect(await server.client.call('subagent.steer', { target: child?.runId ?? '', message: 'Instead.' })).toMatchObject({ status: 'steered' });
  const inbox = async () => (await server.client.call('inbox.list', {})).messages;
  const announced = async () => (await inbox()).map(({ text }) => text.split('\n\n').at(-1)?.slice(0, 9)).toSorted();
  await expect.poll(announced).toEqual(['Asked sr_', 'Something']);
});

test('E1: a wait for a foreign run returns like one for an unknown run, without waiting', async () => {
  // The clock never moves: a wait for a run would not end.
  await using server = await startTestServer({ clock: createStepClock(), config: { agents } });
  server.provider.setAnswer(() => ({ hang: true }));
  const { runId } = await server.client.call('session.spawn', { task: 'x' });
  const ada = await server.as(['rpc']);
  using socket = server.socket(ada.token);
  const unknown = 'sr_00000000-0000-7000-8000-000000000000';
  const texts = new Set<string>();
  for (const id of [runId, unknown, 'no id at all']) {
    const answer = await socket.call('subagent.wait', { runIds: [id], timeoutMs: 5_000 });
    texts.add(JSON.stringify(answer).replace(JSON.stringify(id), ''));
  }
  expect(texts.size).toBe(1);
});
