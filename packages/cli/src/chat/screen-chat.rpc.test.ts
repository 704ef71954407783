import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTerminal, type TestTerminal } from '../testing/test-terminal.ts';
import { createUser } from '../testing/test-io.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: { approvals: { rules: [{ tools: ['write'], action: 'ask' }] }, agents: { default: { model: 'mock/mock-fast' } } },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const enter = '\r';
const escape = '\u001b';

/** Starts `gatehouse chat` on a terminal in memory. */
async function open(
  args: readonly string[],
  more: { readonly env?: Record<string, string>; readonly size?: { columns?: number; rows?: number } } = {},
) {
  const user = await createUser();
  const terminal = createTerminal(more.size);
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token, TERM: 'xterm', ...more.env };
  const running = user.run({
    args: ['chat', ...args],
    env,
    io: { stdin: terminal.stdin, stdout: terminal.stdout, stderr: terminal.stdout, now: () => Date.now() },
  });
  await terminal.sees('Chatting with');
  return {
    ...terminal,
    user,
    running,
    async [Symbol.asyncDispose]() {
      terminal.stdin.end();
      await running;
      await user[Symbol.asyncDispose]();
    },
  };
}

/** Lines that are too long are wrapped by the chat, never by the terminal. */
const wrapped = (terminal: Pick<TestTerminal, 'lines'>) => terminal.lines().filter((line) => line.startsWith('(wrapped)'));
const historyOf = async (sessionKey: string) =>
  (await server.client.call('session.history', { sessionKey, limit: 200 })).messages.map(({ role, content }) => `${role}: ${content}`);

test('the first chat: a question, an answer in Markdown within 80 columns, and the way out', async () => {
  await using chat = await open(['--session', 'first:chat']);
  const long = 'A gateway connects programs and people with agents, and it keeps every word of this sentence whole at the edge.';
  server.provider.queue({
    text: [`# Title\n\n${long}\n\n- one **bold**\n- two \`code\`\n\n`, '```ts\nconst a = 1;\n```\n\n', '| a | b |\n|---|--:|\n| x | 1 |\n'],
  });
  chat.type(`What is a gateway?${enter}`);
  await chat.sees('const a = 1;');
  await chat.sees(/tokens · (?:< )?\$[\d.]+/);
  const shown = chat.shown();
  expect(shown).toContain('> What is a gateway?');
  expect(shown).toContain('• one bold');
  expect(shown).toContain('x │ 1');
  expect(shown).not.toContain('**');
  expect(chat.written()).toContain('\u001b[1m');
  expect(wrapped(chat)).toEqual([]);
  for (const word of long.split(' '))
    expect(
      chat.lines().some((line) => line.split(' ').includes(word)),
      word,
    ).toBe(true);
  chat.type('\u0003');
  await chat.sees('Press Ctrl-C again to leave');
  chat.type('\u0003');
  expect((await chat.running).code).toBe(0);
  expect(chat.raw.on).toBe(false);
  await expect.poll(chat.written).toMatch(/\u001b\[\?2004l$/);
});

test('without colours nothing is coloured', async () => {
  await using chat = await open(['--session', 'colour:less'], { env: { NO_COLOR: '1' } });
  server.provider.queue({ text: '# Title\n\nSome `code`.' });
  chat.type(`Hello${enter}`);
  await chat.sees('# Title');
  await chat.sees('Some `code`.');
  expect(chat.written()).not.toMatch(/\u001b\[\d+m/);
});

test('--plain redraws nothing and leaves Markdown as it is', async () => {
  await using chat = await open(['--plain', '--session', 'plain:chat']);
  server.provider.queue({ text: 'Some **bold** words.' });
  chat.type(`Hello${enter}`);
  await chat.sees('Some **bold** words.');
  expect(chat.raw.on).toBe(true);
  expect(chat.written()).not.toContain('\u001b[?2004h');
});

test('pasted lines are one message, and the history is kept for the user alone', async () => {
  await using chat = await open(['--session', 'paste:chat']);
  server.provider.queue({ text: 'Three lines.' }, { text: 'Two lines.' });
  chat.paste('one\r\ntwo\r\nthree');
  await chat.sees('three');
  chat.type(enter);
  await chat.sees('Three lines.');
  chat.type(`first\\${enter}second${enter}`);
  await chat.sees('Two lines.');
  expect(await historyOf('paste:chat')).toEqual(['user: one\ntwo\nthree', 'assistant: Three lines.', 'user: first\nsecond', 'assistant: Two lines.']);
  // The last message, and the one before it.
  chat.type('\u001b[A');
  await chat.sees(/> first\n {2}second$/m);
  const file = await stat(join(chat.user.dir, '.gatehouse_history'));
  expect(file.mode & 0o777).toBe(0o600);
});

test('tools are shown with their result, and an approval is asked: yes, no and always', async () => {
  await using chat = await open(['--session', 'tools:chat']);
  const write = (id: string, path: string) => ({ toolCalls: [{ id, name: 'write', arguments: JSON.stringify({ path, content: 'milk' }) }] });
  server.provider.queue(write('c1', 'list.md'), { text: 'Written once.' });
  chat.type(`Write it${enter}`);
  await chat.sees('May the agent do this?');
  await chat.sees('"path": "list.md"');
  // Keys that are not offered decide nothing.
  chat.type('x');
  chat.type('n');
  await chat.sees('Denied.');
  await chat.sees('Written once.');
  server.provider.queue(write('c2', 'other.md'), { text: 'Written twice.' });
  chat.type(`Write the other${enter}`);
  await chat.sees(/May the agent[^]*May the agent/);
  chat.type('a');
  await chat.sees('Added to config.yaml');
  await chat.sees(/path: other.md/);
  await chat.sees('Written twice.');
  await chat.sees(/✓ write other\.md \(4 bytes\) · [\d.]+ m?s/);
  const { config } = await server.client.call('config.read', { section: 'approvals' });
  expect(config).toMatchObject({
    rules: [
      { tools: ['write'], agents: ['default'], origins: ['api'], match: { path: 'other.md', content: 'milk' }, exact: true, action: 'auto' },
      { action: 'ask' },
    ],
  });
  // The same call again runs; another one is asked about.
  server.provider.queue(write('c3', 'other.md'), write('c4', 'third.md'), { text: 'And again.' });
  chat.type(`Write both${enter}`);
  await chat.sees(/(May the agent[^]*){3}/);
  expect((await server.client.call('admin.approval.pending', {})).requests).toMatchObject([{ params: { path: 'third.md' } }]);
  // Decided elsewhere, the question goes away.
  await server.client.call('admin.approval.resolveAll', { approved: false, approvedBy: 'dashboard' });
  await chat.sees('Denied by dashboard.');
  await chat.sees('And again.');
});

test('questions of other conversations are not asked here', async () => {
  await using chat = await open(['--session', 'quiet:chat']);
  server.provider.queue({ text: 'First.' });
  chat.type(`Hello${enter}`);
  await chat.sees('First.');
  server.provider.queue({ toolCalls: [{ id: 'o1', name: 'write', arguments: '{"path":"b","content":"c"}' }] });
  const other = server.client.call('agent.execute', { message: 'Write', sessionKey: 'other:chat' });
  await expect.poll(async () => (await server.client.call('admin.approval.pending', {})).total).toBe(1);
  server.provider.queue({ text: 'Second.' });
  chat.type(`Still there?${enter}`);
  await chat.sees('Second.');
  expect(chat.shown()).not.toContain('May the agent');
  server.provider.queue({ text: 'Elsewhere.' });
  await server.client.call('admin.approval.resolveAll', { approved: false });
  await other;
});

test('stop and steer: Esc stops the answer, and what was written meanwhile is sent next', async () => {
  await using chat = await open(['--session', 'steer:chat']);
  server.provider.queue({ text: ['Begun ', 'never'], breakAfter: { deltas: 1, by: 'stall' } }, { text: 'Shorter.' });
  const aborted = server.provider.aborted();
  chat.type(`Explain everything${enter}`);
  await chat.sees('Begun');
  chat.type(`Be brief${enter}`);
  await chat.sees('1 queued');
  chat.type(escape);
  await chat.sees('(stopped)');
  await chat.sees('Shorter.');
  expect(server.provider.aborted()).toBe(aborted + 1);
  expect(await historyOf('steer:chat')).toEqual(['user: Explain everything', 'assistant: Begun ', 'user: Be brief', 'assistant: Shorter.']);
});

test('/steer passes a message to the running answer, and the chat says when none runs', async () => {
  await using chat = await open(['--session', 'steer:on']);
  let steps = 0;
  server.provider.setAnswer(({ body }) => {
    if (JSON.stringify(body).includes('Only the first')) return { text: 'The first.' };
    steps += 1;
    return { text: `Step ${steps}.`, paceMs: 10, toolCalls: [{ id: `s${steps}`, name: 'ls', arguments: `{"path":"${'./'.repeat(steps)}"}` }] };
  });
  chat.type(`Look at everything${enter}`);
  await chat.sees('Step 1.');
  chat.type(`/steer Only the first${enter}`);
  await chat.sees('The agent has your message: Only the first');
  await chat.sees('The first.');
  server.provider.setAnswer(undefined);
  const { total } = await server.client.call('session.history', { sessionKey: 'steer:on', limit: 1 });
  const { messages } = await server.client.call('session.history', { sessionKey: 'steer:on', offset: Math.max(0, total - 2) });
  expect(messages.map(({ role, content }) => [role, content])).toEqual([
    ['user', 'Only the first'],
    ['assistant', 'The first.'],
  ]);
  chat.type(`/steer Now?${enter}`);
  await chat.sees('No answer is running');
});

test('reasoning passes by and is folded into a line', async () => {
  await using chat = await open(['--session', 'think:chat']);
  server.provider.queue({ reasoning: ['The user greets me. ', 'I greet back.'], text: 'Hello!' });
  chat.type(`Hi${enter}`);
  await chat.sees('Hello!');
  await chat.sees(/Thought for \d+ s: The user greets me. I greet back./);
});

test('commands: help, agents, models, cost, conversations, and completion', async () => {
  await server.client.call('agents.create', { agentId: 'scout', config: { model: 'mock/mock-fast' } });
  await using chat = await open(['--session', 'cli:commands']);
  server.provider.queue({ text: 'The zebra is striped.' }, { text: 'Scout here.' });
  chat.type(`What about zebras?${enter}`);
  await chat.sees('The zebra is striped.');
  chat.type('/he\t');
  await chat.sees(/> \/help/);
  chat.type(enter);
  await chat.sees('Alt-Enter, Ctrl-J');
  chat.type('/a\t');
  await chat.sees(/\/agent {2}\/attach/);
  chat.type('gent sc\t');
  await chat.sees('> /agent scout');
  chat.type(enter);
  await chat.sees('Chatting with scout now.');
  chat.type(`Who?${enter}`);
  await chat.sees('Scout here.');
  chat.type(`/cost${enter}`);
  await chat.sees(/tokens, \$[\d.]+ in this conversation/);
  chat.type(`/model mock/mock-slow${enter}`);
  await chat.sees(/(error|uses mock\/mock-slow now)/);
  // What was said last week.
  chat.type(`/find zebra striped${enter}`);
  await chat.sees(/1 {2}What about zebras\?, /);
  chat.type(`/sessions 1${enter}`);
  await chat.sees(/What about zebras\? \(2 messages\)/);
  chat.type(`/nothing${enter}`);
  await chat.sees('/help shows all commands');
  chat.type(`/exit${enter}`);
  expect((await chat.running).code).toBe(0);
});

test('a terminal that becomes narrow is drawn again', async () => {
  await using chat = await open(['--session', 'narrow:chat'], { size: { columns: 100, rows: 20 } });
  chat.type('a message that is longer than the narrow terminal and wraps between its characters');
  await chat.sees('characters');
  chat.resize(40, 20);
  server.provider.queue({ text: 'An answer that is longer than forty columns in one paragraph of text.' });
  chat.type(enter);
  await chat.sees('paragraph');
  const { lines } = chat;
  expect(lines().filter((line) => line.includes('An answer that is longer than'))).toHaveLength(1);
});

// Three daemons start: more than the usual limit on a busy machine.
test('a daemon that restarts: the chat says so, and a message that was written meanwhile is answered', { timeout: 180_000 }, async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-restart-'));
  let daemon = await startTestServer({ homeDir });
  const port = Number(new URL(daemon.url).port);
  const { token } = await daemon.as(['*']);
  await using chat = await open(['--session', 'restart:chat'], { env: { GATEHOUSE_URL: daemon.url, GATEHOUSE_TOKEN: token } });
  daemon.provider.queue({ text: 'Before.' });
  chat.type(`One${enter}`);
  await chat.sees('Before.');
  await daemon[Symbol.asyncDispose]();
  await chat.sees('Connection lost: reconnecting.');
  chat.type(`Two${enter}`);
  await chat.sees(/thinking/);
  daemon = await startTestServer({ homeDir, config: { gateway: { port } } });
  daemon.provider.setAnswer(() => ({ text: 'After.' }));
  await chat.sees('Connected again.');
  await chat.sees('After.');
  await daemon[Symbol.asyncDispose]();
  await rm(homeDir, { recursive: true, force: true });
});
