import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { collector, createUser } from '../testing/test-io.ts';

let server: TestServer;
let user: Awaited<ReturnType<typeof createUser>>;
beforeAll(async () => {
  server = await startTestServer({
    config: { approvals: { rules: [{ tools: ['write'], action: 'ask' }] }, agents: { default: { model: 'mock/mock-fast' } } },
  });
  user = await createUser();
});
afterAll(async () => {
  await user[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const ask = (args: readonly string[], more: Partial<Parameters<typeof user.run>[0]> = {}) =>
  user.run({ args: ['ask', ...args], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token }, ...more });

test('asks once, in a new conversation each time, and continues one by its key or reference', async () => {
  server.provider.queue({ text: 'Four.' }, { text: 'Five.' }, { text: 'Six.' });
  expect(await ask(['What is 2 + 2?'])).toEqual({ code: 0, out: 'Four.\n', err: '' });
  const second = await ask(['And', 'then?', '--json']);
  expect(second).toMatchObject({ code: 0, err: '' });
  const result = JSON.parse(second.out);
  expect(result).toMatchObject({
    answer: 'Five.',
    finishReason: 'stop',
    agentId: 'default',
    usage: { total_tokens: expect.any(Number) },
    sessionKey: expect.stringMatching(/^ask:/),
    conversationRef: expect.stringMatching(/^cv_/),
    traceId: expect.any(String),
  });
  await ask(['More', '--session', result.conversationRef]);
  const { messages } = await server.client.call('session.history', { sessionKey: result.sessionKey });
  expect(messages.map(({ content }) => content)).toEqual(['And then?', 'Five.', 'More', 'Six.']);
});

test('a very long timeout is not a short one', async () => {
  server.provider.queue({ text: 'Four.', delayMs: 50 });
  expect(await ask(['What is 2 + 2?', '--timeout', '5000000'])).toEqual({ code: 0, out: 'Four.\n', err: '' });
});

test('standard input is the question, or a part of it; files belong to it', async () => {
  server.provider.queue({ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' });
  const lastMessage = () => JSON.stringify(server.provider.requests.at(-1)?.body);
  await ask([], { input: 'from a pipe\n' });
  expect(lastMessage()).toContain('from a pipe');
  await ask(['Summarize:', '-'], { input: 'the text' });
  expect(lastMessage()).toContain('Summarize: \\n\\nthe text');
  await writeFile(join(user.dir, 'notes.txt'), 'milk and bread');
  expect(await ask(['What is in it?', '--files', 'notes.txt'])).toMatchObject({ code: 0, out: 'Three.\n' });
  expect(lastMessage()).toContain('milk and bread');
  expect(await ask(['What?', '--files', 'missing.txt'])).toMatchObject({ code: 2, err: expect.stringContaining('it does not exist') });
  expect(await ask([], { input: ' ' })).toMatchObject({ code: 2 });
});

test('the exit code says how it ended', async () => {
  server.provider.queue({ text: 'Cut', finishReason: 'length' });
  expect(await ask(['Long'])).toMatchObject({ code: 5, out: 'Cut\n', err: expect.stringContaining('ended early') });
  server.provider.queue({ status: 400, error: { message: 'Nonsense' } });
  const failed = await ask(['Fail', '--json']);
  expect(failed.code).toBe(1);
  expect(JSON.parse(failed.err)).toMatchObject({ error: { message: expect.any(String) } });
  expect((await ask(['x'], { env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: 'wrong-token-of-more-than-thirty-two-characters' } })).code).toBe(4);
  expect((await ask(['x'], { env: { GATEHOUSE_URL: 'http://127.0.0.1:9', GATEHOUSE_TOKEN: server.token } })).code).toBe(3);
  expect((await ask(['x', '--timeout', 'soon'])).code).toBe(2);
  server.provider.queue({ text: ['Begun ', 'never'], breakAfter: { deltas: 1, by: 'stall' } });
  expect(await ask(['Slow', '--timeout', '0.5', '--json'])).toMatchObject({ code: 1, err: expect.stringContaining('"timeout"') });
});

test('a call waiting for a person is named on standard error', async () => {
  const err = collector();
  server.provider.queue({ toolCalls: [{ id: 'a1', name: 'write', arguments: '{"path":"a","content":"b"}' }] }, { text: 'Done.' });
  const running = ask(['Write it'], { io: { stderr: err.stream } });
  await err.seen('gatehouse approvals approve ap_');
  await server.client.call('admin.approval.resolveAll', { approved: true });
  expect(await running).toMatchObject({ code: 0, out: 'Done.\n' });
});
