import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { answerBy, answering, asked, call, runIdIn } from '../run/testing/delegation-model.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: {
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
      security: { agentToAgent: { subagentContext: { maxResultTokens: 1000 } } },
      autonomy: { guards: { budget: { tokens: 100_000 } } },
    },
  });
});
afterEach(() => server.provider.setAnswer(undefined));
afterAll(() => server[Symbol.asyncDispose]());

const condensing = ({ system }: { readonly system: string }) => system.includes('Condense the report');

async function runWith(text: string, condensed?: string) {
  answerBy(server.provider, (what) => (condensing(what) ? (condensed === undefined ? { status: 500 } : { text: condensed }) : { text }));
  const { runId } = await server.client.call('session.spawn', { task: 'x' });
  const [result] = (await server.client.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 })).results;
  return { runId, completion: result?.completion };
}

test('a small result is its own summary, a medium one keeps its ends, and a model condenses a large one', async () => {
  expect((await runWith('Short.')).completion).toMatchObject({ summary: 'Short.' });
  const middle = `BEGIN ${'word '.repeat(500)}END`;
  const { completion } = await runWith(middle, 'not asked for');
  expect(completion?.summary).toHaveLength(2000);
  expect(completion?.summary).toMatch(/^BEGIN [\s\S]*\n\[…\]\n[\s\S]*END$/);
  const large = `BEGIN ${'word '.repeat(2000)}END`;
  const before = server.provider.served();
  expect((await runWith(large, '  In short: words.  ')).completion).toMatchObject({ summary: 'In short: words.' });
  expect(server.provider.served()).toBe(before + 2);
  const condensation = asked(server.provider.requests.at(-1)?.body);
  expect(condensation.question).toMatch(/^<<<UNTRUSTED-TEXT [0-9a-f]{32} source="sub-agent">>>\nBEGIN/);
  expect(JSON.stringify(await server.client.call('usage.report', { groupBy: ['operation'] }))).toContain('"condensation"');
});

test('both ends are kept when the model fails to condense', async () => {
  const large = `BEGIN ${'word '.repeat(2500)}END`;
  const { completion } = await runWith(large);
  expect(completion).toMatchObject({ endReason: 'completed' });
  expect(completion?.summary).toMatch(/^BEGIN [\s\S]*END$/);
});

/** Returns the records of the condensations of a run, with how they ended. */
async function tracedCondensations(runId: string) {
  const { records } = await server.client.call('obs.trace.get', { ref: runId });
  return records.filter(({ kind }) => kind === 'compaction');
}

test('a condensation that the budget of the root run does not cover is not made, and its trace names the budget', async () => {
  const large = `BEGIN ${'word '.repeat(2000)}END`;
  answerBy(server.provider, (what) => (condensing(what) ? { text: 'Not made.' } : { text: large, usage: { input: 98_000, output: 10 } }));
  const { runId, rootRunId } = await server.client.call('session.spawn', { task: 'x' });
  const [result] = (await server.client.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 })).results;
  expect(result?.completion?.summary).toMatch(/^BEGIN [\s\S]*END$/);
  const report = await server.client.call('obs.explain', { rootRunId });
  expect(report.failures).toContainEqual(expect.objectContaining({ kind: 'model', errorKind: 'budget_exceeded', classifiedFailureBy: 'gate' }));
  expect(await tracedCondensations(runId)).toMatchObject([
    {
      outcome: 'failed',
      modelCalls: 0,
      error: { kind: 'budget_exceeded', text: expect.stringContaining('autonomy.guards.budget.tokens') },
    },
  ]);
});

test('a stop ends a condensation that is being made; what it used is booked', async () => {
  const begun = Promise.withResolvers<void>();
  answerBy(server.provider, (what) => {
    if (!condensing(what)) return { text: `BEGIN ${'word '.repeat(2000)}END` };
    begun.resolve();
    return { hang: true };
  });
  const { runId, conversationRef } = await server.client.call('session.spawn', { task: 'x' });
  await begun.promise;
  await server.client.call('subagent.kill', { target: runId });
  const [result] = (await server.client.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 })).results;
  expect(result?.completion).toMatchObject({ endReason: 'killed' });
  await expect.poll(async () => (await server.client.call('obs.billing.bySession', { conversationRef })).callCount).toBe(2);
  expect(await tracedCondensations(runId)).toMatchObject([{ outcome: 'cancelled', modelCalls: 1 }]);
});

test('a result beyond 16,000 characters becomes a file of its type, which its owner can fetch until it expires', async () => {
  const ada = await server.as(['rpc', 'api']);
  const rows = Array.from({ length: 1500 }, (_, n) => ({ id: n, name: `row ${n}` }));
  const cases = [
    { text: rows.map((row) => JSON.stringify(row)).join('\n'), kind: 'jsonl', rows: 1500, schema: ['id', 'name'], type: /ndjson/ },
    { text: JSON.stringify(rows), kind: 'json', rows: 1500, schema: ['id', 'name'], type: /json/ },
    { text: `id,name\n${rows.map(({ id, name }) => `${id},${name}`).join('\n')}`, kind: 'csv', rows: 1500, schema: ['id', 'name'], type: /csv/ },
    { text: `<!doctype html><p>${'é'.repeat(17_000)}</p>`, kind: 'html', type: /html/ },
    { text: `Prose: ${'😀 '.repeat(6000)}`, kind: 'text', type: /plain/ },
  ];
  for (const { text, type, ...facts } of cases) {
    answerBy(server.provider, (what) => (condensing(what) ? { text: 'Condensed.' } : { text }));
    const { runId } = await ada.call('session.spawn', { task: 'x' });
    const [result] = (await ada.call('subagent.wait', { runIds: [runId], timeoutMs: 10_000 })).results;
    const ref = result?.completion?.resultRef;
    expect(ref).toMatchObject({ ...facts, bytes: Buffer.byteLength(text) });
    expect(ref?.preview.isWellFormed() === true && text.startsWith(ref.preview) && ref.preview.length > 4000).toBe(true);
    expect(ref?.expiresAt).toBeGreaterThan(Date.now() + 86_000_000);
    const get = (token: string) => fetch(`${server.url}${ref?.ref ?? ''}`, { headers: { authorization: `Bearer ${token}` } });
    const fetched = await get(ada.token);
    expect([fetched.status, fetched.headers.get('content-type')]).toEqual([200, expect.stringMatching(type)]);
    expect(await fetched.text()).toBe(text);
    expect((await get((await server.as(['rpc', 'api'])).token)).status).toBe(404);
    const notices = async () => (await ada.call('inbox.list', {})).messages.map(({ text: notice }) => notice);
    await expect.poll(async () => (await notices()).some((notice) => notice.includes(ref?.ref ?? '-'))).toBe(true);
  }
});

test('the file is deleted when it expires', async () => {
  const clock = createStepClock();
  await using timed = await startTestServer({
    clock,
    provider: { answer: answering((what) => ({ text: condensing(what) ? 'Short.' : 'word '.repeat(4000) })) },
    config: { security: { agentToAgent: { subagentContext: { resultRetentionMs: 60_000 } } } },
  });
  const { runId } = await timed.client.call('session.spawn', { task: 'x' });
  const look = async () => (await timed.client.call('subagent.wait', { runIds: [runId], timeoutMs: 0 })).results[0]?.completion?.resultRef?.ref;
  await expect.poll(async () => (clock.advance(10), await look())).toMatch(/^\/media\//);
  const ref = (await look()) ?? '';
  const get = async () => (await fetch(`${timed.url}${ref}`, { headers: { authorization: `Bearer ${timed.token}` } })).status;
  const listed = async () => {
    const response = await fetch(`${timed.url}/media`, { headers: { authorization: `Bearer ${timed.token}` } });
    return ((await response.json()) as { readonly total: number }).total;
  };
  expect([await get(), await listed()]).toEqual([200, 1]);
  clock.advance(61_000);
  expect([await get(), await listed()]).toEqual([404, 0]);
  await expect.poll(async () => (clock.advance(3_600_000), (await readdir(join(timed.homeDir, 'media'))).length)).toBe(0);
});

test('an agent receives the beginning of a large result and reads the rest in parts', async () => {
  const over = server.heard('session:sub_agent_lifecycle_ended');
  const large = `BEGIN ${'word '.repeat(4000)}END`;
  let read = '';
  let foreign = '';
  answerBy(server.provider, (what) => {
    const { question, results } = what;
    if (condensing(what)) return { text: 'Words.' };
    if (question.includes('# Task')) return { text: large };
    if (question.includes('Sub-agents that you asked for')) {
      if (results.length === 0) return call('read_result', { runId: runIdIn(question), offset: 20_000, limit: 100 });
      read = results[0] ?? '';
      return { text: 'Read.' };
    }
    if (question.startsWith('Look')) {
      if (results.length === 0) return call('read_result', { runId: 'sr_00000000-0000-7000-8000-000000000000' });
      foreign = results[0] ?? '';
      return { text: 'No.' };
    }
    return results.length === 0 ? call('sessions_spawn', { task: 'Write much.' }) : { text: 'Asked.' };
  });
  const { conversationRef } = await server.client.call('agent.execute', { message: 'Go.' });
  await expect.poll(() => over.filter(({ requesterRef }) => requesterRef === conversationRef)).toHaveLength(1);
  const { messages: history } = await server.client.call('session.history', { conversationRef });
  const announcement = history.find(({ content }) => content.includes('asked for ended'));
  expect(announcement?.content).toContain('Words.');
  expect(announcement?.content).toMatch(/\[Shortened; the whole result is 20009 bytes of text: read_result gets it with the id sr_/);
  expect(read).toMatch(/word END\n\[characters 20000 to 20009 of 20009\]/);
  expect(read).toContain('UNTRUSTED-TEXT');
  await server.client.call('agent.execute', { message: 'Look.' });
  expect(foreign).toContain('Unknown run ID');
});

test('the latest messages of a conversation are included on request, fenced and limited', async () => {
  const over = server.heard('session:sub_agent_lifecycle_ended');
  answerBy(server.provider, ({ question, results }) => {
    if (question.includes('# Task')) return { text: 'Done.' };
    if (question.includes('Sub-agents that you asked for')) return { text: 'Thanks.' };
    if (question.startsWith('Delegate'))
      return results.length === 0 ? call('sessions_spawn', { task: 'x', includeParentHistory: 'summary' }) : { text: 'Asked.' };
    return { text: 'Noted.' };
  });
  const sessionKey = 'ada:history';
  await server.client.call('agent.execute', { message: `The code is 4711. ${'filler '.repeat(50)}`, sessionKey });
  const { conversationRef } = await server.client.call('agent.execute', { message: 'Delegate.', sessionKey });
  await expect.poll(() => over.filter(({ requesterRef }) => requesterRef === conversationRef)).toHaveLength(1);
  const brief = server.provider.requests.map(({ body }) => asked(body)).findLast(({ question }) => question.includes('# Task'));
  expect(brief?.question).toMatch(
    /<<<UNTRUSTED-TEXT [0-9a-f]{32} provenance="clean" source="conversation">>>\nuser: The code is 4711\.[\s\S]*assistant: Noted\./,
  );
});
