import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { startFakeProvider, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { collector, createUser } from '../testing/test-io.ts';

const key = 'sk-the-right-key-of-this-test';
const sentence = 'Incorrect API key provided';

/** A daemon that knows no real model yet, a provider that lists two, and a user. */
async function open() {
  const vendor = await startFakeProvider({ apiKey: key, models: ['m-one', 'm-two'] });
  const server = await startTestServer({ config: { agents: { default: {} } } });
  await server.client.call('config.set', { path: 'providers', value: null, confirm: true });
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token, TERM: 'dumb' };
  return {
    vendor,
    server,
    run: (args: string[], more: Partial<Parameters<typeof user.run>[0]> = {}) =>
      user.run({ args: ['setup', ...args], ...more, env: { ...env, ...more.env } }),
    /** Answers the questions of a terminal in order: each text when its question has been asked. */
    async answer(args: string[], answers: readonly (readonly [question: string, typed: string])[]) {
      const stdin = Object.assign(new PassThrough(), { isTTY: true as const });
      const err = collector();
      const running = user.run({ args: ['setup', ...args], env, io: { stdin, stderr: err.stream } });
      let asked = 0;
      for (const [question, typed] of answers) {
        await expect.poll(() => err.text().indexOf(question, asked), { message: question }).toBeGreaterThan(-1);
        asked = err.text().indexOf(question, asked) + question.length;
        stdin.write(typed);
      }
      const outcome = await running;
      return { ...outcome, err: err.text() };
    },
    state: async () => ({
      providers: (await server.client.call('providers.list', {})).providers.map(({ provider }) => provider),
      secrets: (await server.client.call('env.list', {})).secrets.map(({ name }) => name),
    }),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await vendor.close();
    },
  };
}

type Session = Awaited<ReturnType<typeof open>>;
const flagsOf = ({ vendor }: Session) => ['--vendor', 'openai-compatible', '--base-url', vendor.url];
const nothing = { providers: [], secrets: [] };

test('flags connect a model, shape the agent and set a budget; a repeat changes nothing', async () => {
  await using session = await open();
  const { server, vendor, run } = session;
  vendor.setAnswer(() => ({ text: 'I am Gate.' }));
  const args = [
    ...flagsOf(session),
    '--key-env',
    'MY_KEY',
    '--model',
    'm-two',
    '--template',
    'coder',
    '--client',
    'codex',
    '--budget-tokens',
    '5000000',
    '--json',
  ];
  const first = await run(args, { env: { MY_KEY: key } });
  expect(first).toMatchObject({ code: 0 });
  expect(JSON.parse(first.out)).toEqual({
    model: { provider: 'server', model: 'm-two', verdict: 'ok', key: 'SERVER_API_KEY' },
    answer: 'I am Gate.',
    template: { template: 'coder', dir: expect.any(String), written: ['AGENTS.md', 'ROLE.md'], kept: [] },
    connect: 'gatehouse connect codex --write',
    budget: { perDayTokens: 5_000_000 },
    url: server.url,
  });
  expect(first.out + first.err).not.toContain(key);
  expect(vendor.requests.at(-1)?.body).toMatchObject({ model: 'm-two' });
  expect((await server.client.call('agents.get', { agentId: 'default' })).config.exec.network).toBe(true);
  expect((await server.client.call('config.read', { section: 'budgets' })).config).toMatchObject({ perDayTokens: 5_000_000 });
  const before = await server.client.call('config.read', {});
  expect((await run(args, { env: { MY_KEY: key } })).code).toBe(0);
  expect(await server.client.call('config.read', {})).toEqual(before);
  expect(await session.state()).toEqual({ providers: ['server'], secrets: ['SERVER_API_KEY'] });
  // Connected by now: nothing is needed but the answer.
  expect(JSON.parse((await run(['--json'])).out)).toMatchObject({
    model: { provider: 'server', model: 'm-two', verdict: 'kept' },
    template: null,
    budget: null,
    answer: 'I am Gate.',
  });
});

test.each([
  ['a refused key, with the sentence of the provider', ['--key-stdin'], 'sk-wrong\n', 1, 'key_refused', sentence],
  ['a model that the provider does not have', ['--key-stdin', '--model', 'nope'], key, 1, 'model_unknown', 'no model'],
  ['an empty standard input', ['--key-stdin'], '', 2, 'usage', 'standard input is empty'],
  ['an unknown template', ['--key-stdin', '--template', 'codr'], key, 2, 'usage', 'Unknown template "codr"'],
  ['an unknown client', ['--key-stdin', '--client', 'nope'], key, 2, 'usage', 'Unknown client "nope"'],
  ['a variable that is not set', ['--key-env', 'NO_SUCH'], '', 2, 'usage', 'NO_SUCH is not set'],
] as const)('%s ends it, and nothing is stored', async (_name, flags, input, code, word, text) => {
  await using session = await open();
  session.vendor.setAnswer(({ body }) =>
    JSON.stringify(body).includes('"nope"') ? { status: 404, error: { message: 'The model nope does not exist: no model' } } : undefined,
  );
  const outcome = await session.run([...flagsOf(session), ...flags, '--json'], { input });
  expect({ code: outcome.code, ...JSON.parse(outcome.err.trim().split('\n').at(-1) ?? '') }).toMatchObject({
    code,
    error: { code: word, message: expect.stringContaining(text) },
  });
  expect(await session.state()).toEqual(nothing);
});

test('without a terminal, what is missing is named', async () => {
  await using session = await open();
  expect(await session.run([])).toMatchObject({ code: 2, err: expect.stringContaining('No model is connected: pass --vendor.') });
  expect(await session.run(['--vendor', 'openai'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('OpenAI needs a key: pass --key-env NAME or --key-stdin.'),
  });
  expect(await session.run(['--vendor', 'opnai'])).toMatchObject({ code: 2, err: expect.stringContaining('Did you mean `--vendor openai`?') });
  expect(await session.run(['--vendor', 'azure'])).toMatchObject({ code: 2, err: expect.stringContaining('pass --base-url') });
  const unreachable = await session.run(['--vendor', 'ollama', '--base-url', 'http://127.0.0.1:1/v1', '--json']);
  expect(unreachable.code).toBe(1);
  expect(unreachable.err).toContain('"code":"unreachable"');
  expect((await session.run(['--vendor', 'openai', '--budget', '0'])).code).toBe(2);
  expect(await session.state()).toEqual(nothing);
});

test('four answers at a terminal lead to the first answer; a wrong key shows the sentence of the provider and is asked again', async () => {
  await using session = await open();
  session.vendor.setAnswer(() => ({ text: 'Hello from m-two.' }));
  const { code, out, err } = await session.answer(
    [],
    [
      ['Which model provider?', 'openai-compatible\r'],
      ['Address of OpenAI-compatible server', `${session.vendor.url}\r`],
      ['API key', 'sk-wrong\r'],
      [sentence, ''],
      ['API key', `${key}\r`],
      ['Which model?', 'm-two\r'],
      ['What is your agent for?', '\r'],
      ['Connect a client?', '\r'],
      ['Limit for 24 hours, in tokens', '2000000\r'],
    ],
  );
  expect(code).toBe(0);
  expect(out).toContain('Hello from m-two.');
  expect(err).toContain('All agents together stop at 2000000 tokens in 24 hours.');
  // What is typed as a key appears nowhere.
  expect(out + err).not.toContain(key);
  expect(out + err).not.toContain('sk-wrong');
  expect(await session.state()).toEqual({ providers: ['server'], secrets: ['SERVER_API_KEY'] });
});

test.each([1, 2, 3, 4])('Ctrl-C at question %i leaves nothing behind', async (nth) => {
  await using session = await open();
  const questions = [
    ['Which model provider?', 'openai-compatible\r'],
    ['Address of OpenAI-compatible server', `${session.vendor.url}\r`],
    ['API key', `${key}\r`],
    ['Which model?', ''],
  ] as const;
  const answers = questions.slice(0, nth).map(([question, typed], index) => [question, index === nth - 1 ? '\u0003' : typed] as const);
  const { code, err } = await session.answer([], answers);
  expect(code).toBe(130);
  expect(err).toContain('`gatehouse setup` continues.');
  expect(await session.state()).toEqual(nothing);
});

test('Ctrl-C after the first answer keeps the model', async () => {
  await using session = await open();
  const { code } = await session.answer([...flagsOf(session), '--key-env', 'X'].slice(0, 4), [
    ['API key', `${key}\r`],
    ['Which model?', '\r'],
    ['What is your agent for?', '\u0003'],
  ]);
  expect(code).toBe(130);
  expect(await session.state()).toEqual({ providers: ['server'], secrets: ['SERVER_API_KEY'] });
  expect((await session.server.client.call('agents.get', { agentId: 'default' })).config.tools.profile).toBe('minimal');
});

test('a daemon that does not start is quoted', async () => {
  await using user = await createUser();
  const script = `console.error('{"level":"info"}\\ngatehouse: 127.0.0.1:4766 is taken by another process'); process.exit(69);`;
  await writeFile(join(user.dir, 'main.js'), script);
  expect(await user.run({ args: ['setup', '--vendor', 'ollama'] })).toMatchObject({
    code: 1,
    err: expect.stringContaining('error: The daemon did not start: 127.0.0.1:4766 is taken by another process\nhint: '),
  });
});
