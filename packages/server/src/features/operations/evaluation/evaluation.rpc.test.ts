import type { EvalCase, Result } from '@gatehouse/contract';
import type * as z from 'zod';
import { createStepClock, startTestServer, type TestServer, type TestServerOptions, sql } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { interceptDb } from '../../access/approvals/testing/intercept-db.ts';

type Case = z.input<ReturnType<typeof EvalCase>>;
type Evaluation = Result<'eval.get'>;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.client.call('agents.create', { agentId: 'other', config: { name: 'Other', model: 'mock/mock-other' } });
});
afterAll(() => server[Symbol.asyncDispose]());

const ended = async ({ client }: Pick<TestServer, 'client'>, evalId: string): Promise<Evaluation> => {
  await expect.poll(async () => (await client.call('eval.get', { evalId })).run.state, { timeout: 30_000 }).not.toBe('running');
  return client.call('eval.get', { evalId });
};
const one = (checks: Case['checks'], more: Partial<Case> = {}): Case => ({ name: 'one', input: 'What?', checks, ...more });

/** Asks one question that is answered with `text`, and returns whether each check passed. */
async function verdicts(text: string, checks: Case['checks'], more: Partial<Case> = {}) {
  server.provider.queue({ text });
  const { evalId } = await server.client.call('eval.run', { cases: [one(checks, more)] });
  const [first] = (await ended(server, evalId)).cases;
  const result = first?.results[0];
  return {
    outcome: result?.outcome,
    checks: result?.checks.map(({ check, passed }) => [check, passed]),
    details: result?.checks.map(({ detail }) => detail),
  };
}
const lastMessages = () => (server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] } | undefined)?.messages ?? [];

describe('checks', () => {
  test('texts, in any case', async () => {
    expect(await verdicts('Within 30 Days.', { contains: ['30 days', 'within'], notContains: 'never' })).toMatchObject({
      outcome: 'passed',
      checks: [
        ['contains', true],
        ['contains', true],
        ['notContains', true],
      ],
    });
    expect(await verdicts('Never.', { contains: '30 days', notContains: 'never' })).toMatchObject({ outcome: 'failed' });
  });

  test('expressions; one that takes forever ends, and decides nothing', async () => {
    expect(await verdicts('Order 4711', { regex: ['\\d{4}', '^Order'] })).toMatchObject({ outcome: 'passed' });
    expect(await verdicts(`${'a'.repeat(40)}!`, { regex: '^(a+)+$' })).toMatchObject({ outcome: 'error', checks: [['regex', null]] });
    await expect(server.client.call('eval.run', { cases: [one({ regex: '(' })] })).rejects.toMatchObject({ code: 'invalid_params' });
  });

  test('JSON Schema, alone or in a code block', async () => {
    const jsonSchema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] };
    expect(await verdicts('```json\n{"total": 3}\n```', { jsonSchema })).toMatchObject({ outcome: 'passed' });
    expect(await verdicts('{"total": "3"}', { jsonSchema })).toMatchObject({ outcome: 'failed', details: [expect.stringContaining('total')] });
    expect(await verdicts('three', { jsonSchema })).toMatchObject({ outcome: 'failed', details: ['the answer is not JSON'] });
    expect(await verdicts('{}', { jsonSchema: { $ref: 'https://example.org/x' } })).toMatchObject({ outcome: 'error' });
  });

  test('cost and duration', async () => {
    expect(await verdicts('x', { maxCostUsd: 1, maxLatencyMs: 60_000 })).toMatchObject({ outcome: 'passed' });
    expect(await verdicts('x', { maxCostUsd: 0 })).toMatchObject({ outcome: 'failed', details: [expect.stringMatching(/^cost \$/)] });
  });

  test('tools that are called count, though effects are refused', async () => {
    server.provider.queue({ toolCalls: [{ id: 'c', name: 'write', arguments: '{"path":"a.txt","content":"x"}' }] });
    expect(await verdicts('done', { toolCalled: 'write', toolNotCalled: 'exec' })).toMatchObject({ outcome: 'passed' });
    const refused = lastMessages().find(({ role }) => role === 'tool');
    expect(refused?.content).toMatch(/^Not run/);
    expect(await verdicts('done', { toolCalled: 'write' })).toMatchObject({ outcome: 'failed', details: ['called none'] });
  });

  test('a judge reads rubric, reference and answer as data; one that fails or babbles decides nothing', async () => {
    const judged = (answer: object) => {
      server.provider.queue({ text: 'The answer' }, answer);
      return server.client.call('eval.run', {
        cases: [one({ judge: { rubric: 'It is polite.', model: 'mock/mock-other' } }, { reference: 'REFERENCE' })],
      });
    };
    const outcomeOf = async (answer: object) => {
      const { evalId } = await judged(answer);
      return (await ended(server, evalId)).cases[0]?.results[0];
    };
    expect(await outcomeOf({ text: 'Sure: {"pass": true, "reason": "polite"}' })).toMatchObject({
      outcome: 'passed',
      judgeCostUsd: expect.any(Number),
    });
    const [system, asked] = lastMessages();
    expect(system?.content).toMatch(/^You grade/);
    expect(asked?.content).toContain('It is polite.');
    expect(asked?.content).toMatch(/UNTRUSTED-TEXT[^]*REFERENCE[^]*UNTRUSTED-TEXT[^]*The answer/);
    expect(await outcomeOf({ text: '{"pass": false, "reason": "rude"}' })).toMatchObject({ outcome: 'failed', checks: [{ detail: 'rude' }] });
    expect(await outcomeOf({ text: 'I like it' })).toMatchObject({
      outcome: 'error',
      checks: [{ passed: null, detail: 'the judge gave no verdict' }],
    });
    const failed = await outcomeOf({ status: 400, error: { message: 'no such thing' } });
    expect(failed).toMatchObject({ outcome: 'error', checks: [{ passed: null, detail: expect.stringContaining('the judge failed') }] });
  });
});

describe('eval.run', () => {
  test('asks two variants side by side, with system text and history, and stores no conversation', async () => {
    const { total } = await server.client.call('session.list', { allAgents: true });
    const { evalId } = await server.client.call('eval.run', {
      name: 'both',
      cases: [
        one(
          { contains: 'o' },
          {
            system: 'SYSTEM-TEXT',
            history: [
              { role: 'user', content: 'before' },
              { role: 'assistant', content: 'then' },
            ],
          },
        ),
      ],
      variants: [{}, { agentId: 'other' }],
      concurrency: 1,
    });
    const { run, cases } = await ended(server, evalId);
    expect(run).toMatchObject({
      name: 'both',
      state: 'completed',
      by: 'token:root',
      cases: 1,
      variants: [
        { agentId: 'default', model: null, pending: 0 },
        { agentId: 'other', model: null, pending: 0 },
      ],
    });
    expect(cases[0]?.results.map(({ model }) => model)).toEqual(['mock/mock-fast', 'mock/mock-other']);
    expect(run.costUsd).toBeCloseTo(cases[0]?.results.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0) ?? -1, 9);
    const sent = lastMessages();
    expect(sent[0]?.content).toContain('SYSTEM-TEXT');
    expect(sent.slice(1).map(({ content }) => content)).toEqual(['before', 'then', 'What?']);
    expect((await server.client.call('session.list', { allAgents: true })).total).toBe(total);
    const traceId = cases[0]?.results[0]?.traceId ?? '';
    const { records } = await server.client.call('obs.trace.get', { ref: traceId });
    expect(records).toMatchObject([{ kind: 'turn', synthetic: true }]);
    expect((await server.client.call('eval.list', {})).runs[0]).toMatchObject({ evalId });
  });

  test('a question that cannot be asked, and a model that fails, are errors of their cases', async () => {
    server.provider.queue({ status: 400, error: { message: 'PROVIDER-SENTENCE' } }, { text: 'ok' });
    const { evalId } = await server.client.call('eval.run', {
      cases: [one({ contains: 'ok' }), one({ contains: 'ok' }, { name: 'two' })],
      concurrency: 1,
    });
    const { cases, run } = await ended(server, evalId);
    expect(cases.map(({ results }) => results[0]?.outcome)).toEqual(['error', 'passed']);
    expect(cases[0]?.results[0]?.error?.text).toContain('PROVIDER-SENTENCE');
    expect(run.variants[0]).toMatchObject({ passed: 1, errors: 1 });
  });

  test('is refused before anything is stored: unknown agents, models and judges, other scopes', async () => {
    const { client } = server;
    const { total } = await client.call('eval.list', {});
    const cases = [one({ contains: 'x' })];
    await expect(client.call('eval.run', { cases, variants: [{ agentId: 'nobody' }] })).rejects.toMatchObject({ code: 'not_found' });
    await expect(client.call('eval.run', { cases, variants: [{ model: 'mock/none' }] })).rejects.toMatchObject({ code: 'precondition_failed' });
    await expect(client.call('eval.run', { cases: [one({ judge: { rubric: 'x', model: 'mock/none' } })] })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    await expect(client.call('eval.run', { cases: [one({})] })).rejects.toMatchObject({ code: 'invalid_params' });
    const member = await server.as(['rpc']);
    await expect(member.call('eval.run', { cases })).rejects.toMatchObject({ code: 'insufficient_scope' });
    expect((await client.call('eval.list', {})).total).toBe(total);
  });

  test('a token limited to some agents sees its own evaluations only', async () => {
    const { evalId } = await server.client.call('eval.run', { cases: [one({ contains: 'CANARY' })] });
    await ended(server, evalId);
    const narrow = await server.as(['admin'], { agents: ['other'] });
    expect((await narrow.call('eval.list', {})).runs).toEqual([]);
    await expect(narrow.call('eval.get', { evalId })).rejects.toMatchObject({ code: 'not_found' });
    await expect(narrow.call('eval.stop', { evalId })).rejects.toMatchObject({ code: 'not_found' });
    await expect(narrow.call('eval.run', { cases: [one({ contains: 'x' })] })).rejects.toMatchObject({ code: 'not_found' });
    const own = await narrow.call('eval.run', { cases: [one({ contains: 'x' })], variants: [{ agentId: 'other' }] });
    await ended({ client: narrow }, own.evalId);
    expect((await narrow.call('eval.list', {})).runs.map((run) => run.evalId)).toEqual([own.evalId]);
  });
});

describe('an evaluation ends early', () => {
  const cases = (count: number) => Array.from({ length: count }, (_, n) => one({ contains: 'x' }, { name: `case ${n}` }));
  /** Queues an answer that arrives when the test says so; `asked` resolves when the question has arrived. */
  function held(own: TestServer, text = 'x') {
    const gate = Promise.withResolvers<undefined>();
    const before = own.provider.requests.length;
    own.provider.queue({ text, after: gate.promise });
    return { release: () => gate.resolve(undefined), asked: () => expect.poll(() => own.provider.requests.length).toBeGreaterThan(before) };
  }
  const starting = (options: TestServerOptions = {}) => startTestServer(options);

  test('budgetUsd: no further question once the cost reaches it; unknown prices are rejected', async () => {
    await using own = await starting({
      config: { providers: { free: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:9', models: [{ id: 'unpriced' }] } } },
    });
    const { evalId } = await own.client.call('eval.run', { cases: cases(5), concurrency: 1, budgetUsd: 1e-9 });
    const { run } = await ended(own, evalId);
    expect(run).toMatchObject({ state: 'budget_exceeded', reason: 'budgetUsd is spent', variants: [{ pending: 4 }] });
    await expect(own.client.call('eval.run', { cases: cases(1), variants: [{ model: 'free/unpriced' }], budgetUsd: 1 })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
  });

  test("the agent's own budget in the middle", async () => {
    await using own = await starting();
    await own.client.call('agents.create', { agentId: 'poor', config: { model: 'mock/mock-fast', budgets: { perHourTokens: 30 } } });
    const { evalId } = await own.client.call('eval.run', { cases: cases(5), variants: [{ agentId: 'poor' }], concurrency: 1 });
    const { run, cases: asked } = await ended(own, evalId);
    expect(run.state).toBe('budget_exceeded');
    expect(run.reason).toMatch(/perHourTokens/);
    expect(run.variants[0]?.pending).toBeGreaterThan(0);
    expect(asked.flatMap(({ results }) => results).at(-1)).toMatchObject({ outcome: 'error', error: { kind: 'budget_exceeded' } });
  });

  test('eval.stop aborts what runs and keeps the results', async () => {
    await using own = await starting();
    own.provider.queue({ text: 'x' });
    const second = Promise.withResolvers<undefined>();
    own.provider.queue({ text: 'x', after: second.promise });
    const { evalId } = await own.client.call('eval.run', { cases: cases(4), concurrency: 1 });
    await expect.poll(() => own.provider.requests.length).toBe(2);
    expect(await own.client.call('eval.stop', { evalId })).toEqual({ evalId, stopped: true });
    second.resolve(undefined);
    expect((await own.client.call('eval.get', { evalId })).run).toMatchObject({ state: 'stopped', variants: [{ passed: 1, pending: 3 }] });
    expect(await own.client.call('eval.stop', { evalId })).toEqual({ evalId, stopped: false });
    expect(own.provider.requests).toHaveLength(2);
  });

  test('a revoked token', async () => {
    await using own = await starting();
    const token = await own.as(['admin']);
    const first = held(own);
    const { evalId } = await token.call('eval.run', { cases: cases(3), concurrency: 1 });
    await first.asked();
    await own.client.call('tokens.revoke', { id: token.tokenId });
    first.release();
    const { run } = await ended(own, evalId);
    expect(run).toMatchObject({ state: 'stopped', reason: 'Its token was revoked', variants: [{ pending: 3 }] });
    expect(own.provider.requests).toHaveLength(1);
  });

  test('an agent that is suspended or deleted in the middle: the other cases are errors', async () => {
    await using own = await starting();
    for (const agentId of ['suspended', 'deleted']) await own.client.call('agents.create', { agentId, config: { model: 'mock/mock-fast' } });
    for (const [agentId, end] of [
      ['suspended', () => own.client.call('agents.suspend', { agentId: 'suspended' })],
      ['deleted', () => own.client.call('agents.delete', { agentId: 'deleted' })],
    ] as const) {
      const first = held(own);
      const { evalId } = await own.client.call('eval.run', { cases: cases(3), variants: [{ agentId }], concurrency: 1 });
      await first.asked();
      await end();
      first.release();
      const { run, cases: asked } = await ended(own, evalId);
      expect([agentId, run.state, run.variants[0]?.errors]).toEqual([agentId, 'completed', 3]);
      expect(asked.at(-1)?.results[0]?.error?.text).toMatch(agentId === 'deleted' ? /not found/i : /suspended/i);
    }
  });

  test('a full disk: it failed, also once there is space again and after a restart', async () => {
    const clock = createStepClock(Date.UTC(2026, 8, 21, 12));
    let isFull = false;
    const db = interceptDb(async ({ operation }, write) => {
      if (operation === 'evaluation.addResult') isFull = true;
      if (!isFull) return write();
      throw Object.assign(new Error('database or disk is full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 });
    });
    const first = await starting({ clock, db, homeDir: `${server.homeDir}-full` });
    const { homeDir } = first;
    const { evalId } = await first.client.call('eval.run', { cases: cases(3), concurrency: 1 });
    const failed = { state: 'failed', reason: 'A result could not be stored', variants: [{ pending: 3 }] };
    expect((await ended(first, evalId)).run).toMatchObject(failed);
    isFull = false;
    clock.advance(30_000);
    expect((await first.client.call('eval.get', { evalId })).run).toMatchObject(failed);
    await expect.poll(() => sql(homeDir, 'SELECT state FROM eval_run')).toEqual([{ state: 'failed' }]);
    await first[Symbol.asyncDispose]();
    await using after = await starting({ clock, homeDir });
    expect((await after.client.call('eval.get', { evalId })).run).toMatchObject(failed);
  });

  test('a stop of the daemon: interrupted, also after the restart', async () => {
    const first = await starting({ homeDir: `${server.homeDir}-restarted` });
    const { homeDir } = first;
    const question = held(first);
    const { evalId } = await first.client.call('eval.run', { cases: cases(3), concurrency: 1 });
    await question.asked();
    await first[Symbol.asyncDispose]();
    question.release();
    await using after = await starting({ homeDir });
    expect((await after.client.call('eval.get', { evalId })).run).toMatchObject({ state: 'interrupted', variants: [{ pending: 3 }] });
  });
});

describe('eval.cases', () => {
  test('makes a case of a turn and of its trace, with the texts before it', async () => {
    const say = (message: string) => server.client.call('agent.execute', { message, sessionKey: 'cases:desk' });
    await say('first question');
    server.provider.queue({ text: 'the second answer' });
    const { traceId, conversationRef } = await say('second question');
    const { messages } = await server.client.call('session.history', { conversationRef });
    const byTurn = await server.client.call('eval.cases', { ref: messages.at(-1)?.turnId });
    expect(byTurn.cases).toMatchObject([
      {
        name: 'second question',
        input: 'second question',
        history: [{ role: 'user', content: 'first question' }, { role: 'assistant' }],
        reference: 'the second answer',
        checks: { judge: { rubric: expect.stringContaining('reference') } },
      },
    ]);
    expect(byTurn.yaml).toMatch(/^cases:\n {2}- name: second question\n/);
    expect(await server.client.call('eval.cases', { ref: traceId })).toEqual(byTurn);
  });

  test('makes cases of answers that people marked; a note names the fault to look for', async () => {
    const member = await server.as(['rpc']);
    await member.call('agent.execute', { message: 'good question' });
    await member.call('session.feedback', { conversationRef: (await member.call('session.status', {})).conversationRef, rating: 'good' });
    await member.call('agent.execute', { message: 'bad question' });
    await member.call('session.feedback', {
      conversationRef: (await member.call('session.status', {})).conversationRef,
      rating: 'bad',
      note: 'It names the price of last year.',
    });
    const bad = await server.client.call('eval.cases', { rating: 'bad' });
    expect(bad.cases).toMatchObject([{ input: 'bad question', checks: { judge: { rubric: expect.stringContaining('the price of last year') } } }]);
    expect(bad.cases[0]).not.toHaveProperty('reference');
    expect((await server.client.call('eval.cases', {})).cases.map(({ input }) => input)).toEqual(['bad question', 'good question']);
    expect((await server.client.call('eval.cases', { agentId: 'other' })).cases).toEqual([]);
    await expect(member.call('eval.cases', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
    const narrow = await server.as(['admin'], { agents: ['other'] });
    expect((await narrow.call('eval.cases', {})).cases).toEqual([]);
  });
});
