import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { answering, type Answering, call } from './testing/delegation-model.ts';

interface Death {
  readonly operation: string;
  /** Which time that it is written. */
  readonly time: number;
  readonly committed: boolean;
}

/** A database that its process loses at a write: nothing after that is stored, as after a kill. */
function mortal(death: Death) {
  const died = Promise.withResolvers<void>();
  let isDead = false;
  let seen = 0;
  const dead = () => Promise.reject(new AppError('unavailable', 'The process is dead'));
  const die = () => {
    isDead = true;
    died.resolve();
    return dead();
  };
  return {
    died: died.promise,
    wrap: (db: Db): Db => ({
      ...db,
      telemetry: (operation, input) => (isDead ? dead() : db.telemetry(operation, input)),
      read: (operation, input) => (isDead ? dead() : db.read(operation, input)),
      search: (operation, input) => (isDead ? dead() : db.search(operation, input)),
      async write(operation, input) {
        if (isDead) return dead();
        const isLast = operation.name === death.operation && (seen += 1) === death.time;
        if (isLast && !death.committed) return die();
        const output = await db.write(operation, input);
        return isLast ? die() : output;
      },
      [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
    }),
  };
}

let homeDir: string;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-crash-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

interface Start {
  readonly db?: (db: Db) => Db;
  readonly agentToAgent?: { readonly steerInject?: boolean; readonly subagentContext?: { readonly maxResultTokens: number } };
  readonly respond?: Answering;
}

function start({ db, agentToAgent = { steerInject: false }, respond = answer }: Start = {}): Promise<TestServer> {
  return startTestServer({
    homeDir,
    provider: { answer: answering(respond) },
    ...(db !== undefined && { db }),
    config: {
      gateway: { drainTimeoutMs: 20, tokens: [{ id: 'owner', secret: 'x'.repeat(40), scopes: ['*'] }] },
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
      security: { agentToAgent },
    },
  });
}

const answer: Answering = ({ question, results }) => {
  if (question.includes('Sub-agents that you asked for')) return { text: 'Thanks.' };
  // Late enough that the requesting conversation is stored by then.
  if (question.includes('# Task')) return results.length === 0 ? { ...call('ls', {}), delayMs: 300 } : { text: 'The report.' };
  return results.length === 0 ? call('sessions_spawn', { task: 'x' }) : { text: 'Asked.' };
};

/** Returns what remains in the tables. */
async function remaining() {
  const one = async (text: string) => Object.values((await sql(homeDir, text))[0] ?? {})[0];
  return {
    openWork: await one('SELECT count(*) FROM work_item WHERE ended_at_ms IS NULL'),
    openTurns: await one("SELECT count(*) FROM turn WHERE state IN ('accepted', 'running')"),
    ledgers: await one('SELECT (SELECT count(*) FROM durable_turn) + (SELECT count(*) FROM turn_step)'),
    openLeases: await one('SELECT count(*) FROM lease WHERE ended_at_ms IS NULL'),
    openRoots: await one("SELECT count(*) FROM root_run WHERE state = 'active' OR open_runs <> 0"),
    inbox: await one('SELECT count(*) FROM inbox_message'),
    turns: await one("SELECT count(*) FROM message WHERE content LIKE '%Sub-agents that you asked for ended%'"),
    unannounced: await one("SELECT count(*) FROM sub_agent_run WHERE announced = 'pending'"),
    runs: await one('SELECT count(*) FROM sub_agent_run'),
  };
}

const clean = { openWork: 0, openTurns: 0, ledgers: 0, openLeases: 0, openRoots: 0, unannounced: 0 };

/** Nothing that a dead process does while it shuts down is stored. */
async function disposeDead(server: TestServer): Promise<void> {
  try {
    await server[Symbol.asyncDispose]();
  } catch {}
}

const deaths: readonly Death[] = [
  { operation: 'subagents.accept', time: 1, committed: false },
  { operation: 'subagents.accept', time: 1, committed: true },
  { operation: 'subagents.begin', time: 1, committed: true },
  { operation: 'turns.openDurable', time: 1, committed: true },
  { operation: 'turns.checkpoint', time: 1, committed: true },
  { operation: 'turns.commitDurable', time: 1, committed: false },
  { operation: 'turns.commitDurable', time: 1, committed: true },
  { operation: 'subagents.takeAnnouncement', time: 1, committed: true },
  { operation: 'turns.openDurable', time: 2, committed: true },
  { operation: 'turns.commitDurable', time: 2, committed: false },
  { operation: 'turns.commitDurable', time: 2, committed: true },
];

test.each(deaths)('a process that dies at $operation $time (committed: $committed) leaves one end and one announcement', async (death) => {
  const { wrap, died } = mortal(death);
  const first = await start({ db: wrap });
  const asking = first.client.call('agent.execute', { message: 'Go.' }).catch(() => undefined);
  await died;
  await disposeDead(first);
  await asking;
  {
    await using second = await start();
    const runs = death.operation === 'subagents.accept' && !death.committed ? 0 : 1;
    await expect.poll(remaining).toMatchObject({ openWork: 0, unannounced: 0, runs });
    const { runs: found } = await second.client.call('subagent.list', {});
    expect(found).toMatchObject(Array.from({ length: runs }, () => ({ status: 'completed', completion: { summary: 'The report.' } })));
    const { inbox, turns, ...rest } = await remaining();
    expect(rest).toEqual({ ...clean, runs });
    expect(Number(inbox) + Number(turns)).toBe(runs);
  }
});

test.each([false, true])(
  'a message for a running run comes into it once, also when its process dies at the step that holds it (committed: %s)',
  async (committed) => {
    const { wrap, died } = mortal({ operation: 'turns.checkpoint', time: 2, committed });
    const steerable = { steerInject: true };
    const steered = Promise.withResolvers<void>();
    const respond: Answering = ({ question, results, messages }) => {
      if (question.includes('Look at the tests')) return results.length === 0 ? call('ls', {}) : { text: 'Steered.' };
      return messages.some(({ role }) => role === 'tool') ? { text: 'Not steered.' } : { ...call('ls', {}), after: steered.promise };
    };
    const first = await start({ db: wrap, agentToAgent: steerable, respond });
    const { runId, conversationRef } = await first.client.call('session.spawn', { task: 'x' });
    await expect.poll(() => first.provider.served()).toBe(1);
    await first.client.call('subagent.steer', { target: runId, message: 'Look at the tests.' });
    steered.resolve();
    await died;
    await disposeDead(first);
    await using second = await start({ agentToAgent: steerable, respond });
    const { results } = await second.client.call('subagent.wait', { runIds: [runId], timeoutMs: 15_000 });
    expect(results).toMatchObject([{ status: 'completed', completion: { summary: expect.stringMatching(/Steered\.$/) } }]);
    const { messages } = await second.client.call('session.history', { conversationRef });
    expect(messages.filter(({ content }) => content.includes('Look at the tests.')).map(({ role }) => role)).toEqual(['user']);
  },
);

test.each([
  { operation: 'work.book', time: 1, committed: false },
  { operation: 'turns.commitDurable', time: 1, committed: false },
])('the condensation of a result is booked once, on its root run too, when its process dies at $operation (committed: $committed)', async (death) => {
  const { wrap, died } = mortal(death);
  const agentToAgent = { subagentContext: { maxResultTokens: 1000 } };
  let calls = 0;
  let nano = 0;
  const respond: Answering = ({ system }) => {
    const usage = { input: 1000 + calls, output: 10 + 3 * calls };
    calls += 1;
    // 1 and 2 dollars for a million tokens.
    nano += usage.input * 1000 + usage.output * 2000;
    return { text: system.includes('Condense the report') ? 'In short.' : 'word '.repeat(2000), usage };
  };
  const first = await start({ db: wrap, agentToAgent, respond });
  const { runId } = await first.client.call('session.spawn', { task: 'x' });
  await died;
  await disposeDead(first);
  await using second = await start({ agentToAgent, respond });
  const { results } = await second.client.call('subagent.wait', { runIds: [runId], timeoutMs: 15_000 });
  expect(results).toMatchObject([{ completion: { summary: 'In short.' } }]);
  const { totals } = await second.client.call('usage.report', { groupBy: ['operation'] });
  expect([totals.calls, Math.round((totals.costUsd ?? 0) * 1e9)]).toEqual([calls, nano]);
  const { runs } = await second.client.call('run.list', {});
  expect(runs.map(({ cost }) => Math.round((cost ?? 0) * 1e9))).toEqual([nano]);
});
