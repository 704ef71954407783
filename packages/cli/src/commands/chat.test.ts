import { PassThrough } from 'node:stream';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { collector, createUser } from '../testing/test-io.ts';
import { type Answer, startServer, token } from '../testing/servers.ts';

interface Asked {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

/** Answers with the number of messages and the last one, in two chunks; "wait" never finishes. */
const echo: Answer = ({ body }, response) => {
  const { messages }: Asked = JSON.parse(body);
  const last = messages.at(-1)?.content ?? '';
  const chunk = (fields: object) =>
    response.write(`data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })}\n\n`);
  const delta = (content: string) => chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
  if (last === 'fail')
    return void response.writeHead(500).end('{"error":{"message":"The model is gone.","type":"server_error","param":null,"code":null}}');
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (last === 'wait') return void delta('waiting');
  delta(`${messages.length}:`);
  delta(last);
  chunk({
    choices: [{ index: 0, delta: {}, finish_reason: last === 'long' ? 'length' : 'stop' }],
    gatehouse: { finish_reason: last === 'long' ? 'max_steps' : 'stop' },
  });
  chunk({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } });
  return void response.end('data: [DONE]\n\n');
};

async function open() {
  const server = await startServer(echo);
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token };
  return {
    env,
    user,
    asked: (): Asked[] => server.requests.map(({ body }) => JSON.parse(body)),
    run: (args: readonly string[], input = '') => user.run({ args: ['chat', '--stateless', ...args], input, env }),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('one question, one answer', async () => {
  await using session = await open();
  expect(await session.run(['what', 'is', 'it'])).toEqual({ code: 0, out: '1:what is it\n', err: '' });
  expect(session.asked()).toEqual([{ model: 'agent/default', messages: [{ role: 'user', content: 'what is it' }], stream: true }]);
});

test('a pipe is the question; "-" puts it after the text', async () => {
  await using session = await open();
  expect((await session.run([], 'piped\n')).out).toBe('1:piped\n');
  expect((await session.run(['Summarise:', '-'], 'the text')).out).toBe('1:Summarise: \n\nthe text\n');
  expect(await session.run([], ' \n')).toMatchObject({ code: 2, err: expect.stringContaining('empty') });
});

test('--agent or --model selects who answers', async () => {
  await using session = await open();
  await session.run(['--agent', 'scout', 'a']);
  await session.run(['--model', 'local/m', 'b']);
  expect(session.asked().map(({ model }) => model)).toEqual(['agent/scout', 'local/m']);
  expect(await session.run(['--agent', 'scout', '--model', 'm', 'c'])).toMatchObject({ code: 2 });
});

test('JSON output is one object; an early end is reported on standard error', async () => {
  await using session = await open();
  const { out } = await session.run(['--output', 'json', 'hello']);
  expect(JSON.parse(out)).toEqual({
    model: 'agent/default',
    content: '1:hello',
    finishReason: 'stop',
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
  });
  expect(await session.run(['long'])).toMatchObject({ code: 0, err: '(ended early: max_steps)\n' });
});

test('Ctrl-C stops an answer, keeps the text and exits with 130', async () => {
  await using session = await open();
  const out = collector();
  let press = () => {};
  const running = session.user.run({
    args: ['chat', '--stateless', 'wait'],
    env: session.env,
    io: { stdout: out.stream, onInterrupt: (handler) => ((press = handler), () => undefined) },
  });
  await out.seen('waiting');
  press();
  expect(await running).toMatchObject({ code: 130, err: '(stopped)\n' });
  expect(out.text()).toBe('waiting\n');
});

test('a conversation keeps its history, clears it on /new, survives a failed turn and ends on the second Ctrl-C', async () => {
  await using session = await open();
  const out = collector();
  const err = collector();
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  let press = () => {};
  const running = session.user.run({
    args: ['chat', '--stateless'],
    env: session.env,
    io: { stdin, stdout: out.stream, stderr: err.stream, onInterrupt: (handler) => ((press = handler), () => undefined) },
  });
  await out.seen('> ');
  stdin.write('one\n');
  await out.seen('1:one');
  stdin.write('two\n');
  await out.seen('3:two');
  stdin.write('fail\n');
  await err.seen('The model is gone');
  // The failed question is not sent again.
  stdin.write('three\n');
  await out.seen('5:three');
  stdin.write('/new\nfour\n');
  await out.seen('1:four');
  stdin.write('/nonsense\nwait\n');
  await out.seen('waiting');
  press();
  await out.seen('waiting\n> ');
  expect(err.text()).toContain('(stopped)');
  press();
  expect((await running).code).toBe(0);
  // Once at the start, once for the unknown command.
  expect(err.text().split('/new clears')).toHaveLength(3);
});

test('a failure before the answer is a failure of the command', async () => {
  await using session = await open();
  const outcome = await session.run(['fail']);
  expect(outcome).toMatchObject({ code: 1, err: 'error: The model is gone\n' });
});

test('with --session the daemon keeps the conversation', async () => {
  await using server = await startTestServer();
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  server.provider.queue({ text: ['Noted', '.'] }, { text: 'You are Ada.' }, { status: 400, error: { message: 'Nonsense' } });
  expect(await user.run({ args: ['chat', '--session', 'ada:desk', 'I', 'am', 'Ada'], env })).toEqual({ code: 0, out: 'Noted.\n', err: '' });
  const { out } = await user.run({ args: ['chat', '--session', 'ada:desk', '--json', 'Who am I?'], env });
  expect(JSON.parse(out)).toMatchObject({ content: 'You are Ada.', finishReason: 'stop', usage: { total_tokens: expect.any(Number) } });
  expect(await server.client.call('session.history', { sessionKey: 'ada:desk' })).toMatchObject({
    messages: [{ content: 'I am Ada' }, { content: 'Noted.' }, { content: 'Who am I?' }, { content: 'You are Ada.' }],
  });
  expect(await user.run({ args: ['chat', '--session', 'ada:desk', 'Fail'], env })).toMatchObject({ code: 1, err: expect.stringMatching(/^error: /) });
  expect(await user.run({ args: ['chat', '--session', 'ada:desk', '--model', 'm', 'x'], env })).toMatchObject({ code: 2 });
});

test('in a kept conversation only new messages are sent, and /new starts another one', async () => {
  await using server = await startTestServer();
  await using user = await createUser();
  const out = collector();
  const err = collector();
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  server.provider.queue({ text: 'First.' }, { text: 'Second.' }, { text: ['Begun '], breakAfter: { deltas: 1, by: 'stall' } }, { text: 'Fourth.' });
  let press = () => {};
  const running = user.run({
    args: ['chat', '--session', 'ada:desk'],
    env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token },
    io: { stdin, stdout: out.stream, stderr: err.stream, onInterrupt: (handler) => ((press = handler), () => undefined) },
  });
  await out.seen('> ');
  stdin.write('one\n');
  await out.seen('First.');
  stdin.write('two\n');
  await out.seen('Second.');
  const aborted = server.provider.aborted();
  stdin.write('three\n');
  await out.seen('Begun');
  press();
  await expect.poll(() => server.provider.aborted()).toBe(aborted + 1);
  await out.seen('Begun \n> ');
  stdin.write('/new\nfour\n');
  await out.seen('Fourth.');
  stdin.write('/exit\n');
  expect((await running).code).toBe(0);
  expect(err.text()).toMatch(/in ada:desk\. .*New conversation: cli:chat-\d+\./s);
  const { messages } = await server.client.call('session.history', { sessionKey: 'ada:desk', limit: 4 });
  expect(messages.map(({ content }) => content)).toEqual(['one', 'First.', 'two', 'Second.']);
});

test('chat keeps its conversation by default, for each token and agent, and finds it again', async () => {
  await using server = await startTestServer();
  await using user = await createUser();
  await server.client.call('agents.create', { agentId: 'scout' });
  const { secret } = await server.client.call('tokens.create', { scopes: ['rpc', 'api'] });
  const run = (env: object, ...args: string[]) =>
    user.run({ args: ['chat', ...args], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token, ...env } });
  server.provider.setAnswer(({ body }) => ({
    text: `${(body as { messages: { role: string }[] }).messages.filter(({ role }) => role === 'user').length} asked`,
  }));
  expect((await run({}, '--list')).out).toBe('No conversations.\n');
  expect(await run({}, '--continue', 'x')).toMatchObject({ code: 2, err: expect.stringContaining('No terminal conversation') });
  expect((await run({}, 'one')).out).toBe('1 asked\n');
  expect(await run({}, 'two')).toEqual({ code: 0, out: '2 asked\n', err: '' });
  expect((await run({}, '--agent', 'scout', 'one')).out).toBe('1 asked\n');
  expect(await run({ GATEHOUSE_TOKEN: secret }, 'one')).toEqual({ code: 0, out: '1 asked\n', err: '' });
  expect((await run({}, '--stateless', 'one')).out).toBe('1 asked\n');
  await run({}, '--session', 'ada:desk', 'elsewhere');
  await run({}, '--session', 'cli:other', 'one');
  expect((await run({}, '--continue', 'two')).out).toBe('2 asked\n');
  expect((await run({ GATEHOUSE_TOKEN: secret }, '--continue', 'two')).out).toBe('2 asked\n');
  const { out } = await run({ GATEHOUSE_TOKEN: secret }, '--list');
  expect(out).toMatch(/^one +default +dm +4 .* cli:chat$/m);
  expect(out).not.toMatch(/cli:other|ada:desk/);
  expect(await run({}, '--stateless', '--continue', 'x')).toMatchObject({ code: 2, err: expect.stringContaining('--continue and --stateless') });
});

test("model output can't control the terminal; a pipe gets it unchanged", async () => {
  await using server = await startTestServer();
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  const text = 'a\u009b31m\u202e\u001b[2Jb\nc';
  server.provider.queue({ text }, { text });
  const shown = collector();
  await user.run({ args: ['chat', 'one'], env, io: { stdout: Object.assign(shown.stream, { isTTY: true }) } });
  expect(shown.text()).toBe('a\\u009b31m\\u202e\\u001b[2Jb\nc\n');
  expect((await user.run({ args: ['chat', 'two'], env })).out).toBe(`${text}\n`);
  const listed = await user.run({ args: ['call', 'session.history', '--session-key', 'cli:chat'], env });
  expect(listed.out).toContain('a\\u009b31m\\u202e\\u001b[2Jb\\nc');
  expect(JSON.parse(listed.out)).toMatchObject({ messages: [{}, { content: text }, {}, {}] });
});
