import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { collector, createUser } from '../testing/test-io.ts';

async function open() {
  const server = await startTestServer();
  const user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  return {
    server,
    user,
    run: (args: readonly string[], input = '') => user.run({ args, env, input }),
    write: (name: string, text: string) => writeFile(join(user.dir, name), text),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const twoCases = `name: support
cases:
  - name: refund
    input: Can I return shoes?
    checks:
      contains: 30 days
  - name: greeting
    input: Hello
    checks: {regex: "^Good (morning|day)", toolNotCalled: [exec]}
`;

test('runs a file, shows what did not pass and why, and ends with 1; with 0 when everything passed', async () => {
  await using shell = await open();
  await shell.write('cases.yaml', twoCases);
  shell.server.provider.queue({ text: 'Within 30 days.' }, { text: 'Moin <all>' });
  const failed = await shell.run(['eval', 'cases.yaml', '--concurrency', '1', '--junit', 'report.xml']);
  expect(failed).toMatchObject({ code: 1, err: '' });
  expect(failed.out).toMatch(/^CASE +DEFAULT\nrefund +passed {2}\$\S+ {2}\d+ ms\ngreeting +FAILED/);
  expect(failed.out).toMatch(/\ngreeting\n {4}regex \^Good \(morning\|day\)\n {4}trace [0-9a-f]{32}/);
  const report = await readFile(join(shell.user.dir, 'report.xml'), 'utf8');
  expect(report).toContain('<testsuite name="default" tests="2" failures="1" errors="0" skipped="0">');
  expect(report).toContain('<failure message="regex ^Good (morning|day)"/>');
  shell.server.provider.queue({ text: '30 days' }, { text: 'Good day' });
  expect((await shell.run(['eval', 'cases.yaml', '--concurrency', '1'])).code).toBe(0);
});

test('compares agents and models side by side, as JSON', async () => {
  await using shell = await open();
  await shell.server.client.call('agents.create', { agentId: 'other', config: { model: 'mock/mock-fast' } });
  await shell.write('cases.json', JSON.stringify({ cases: [{ name: 'one', input: 'x', checks: { maxLatencyMs: 60_000 } }] }));
  const done = await shell.run(['eval', 'cases.json', '--against', 'other', '--model', 'mock/mock-other', '--json']);
  expect(done.code).toBe(0);
  const { run, cases } = JSON.parse(done.out);
  expect(run.variants.map((one: { agentId: string; model: string | null }) => [one.agentId, one.model])).toEqual([
    ['default', null],
    ['other', null],
    ['default', 'mock/mock-other'],
  ]);
  expect(cases[0].results).toHaveLength(3);
});

test('errors of the file name line, field and what was expected, and nothing runs', async () => {
  await using shell = await open();
  await shell.write('bad.yaml', 'cases:\n  - name: one\n    input: x\n    checks:\n      regex: "("\n  - name: two\n    checks: {}\n    extra: 1\n');
  const { code, err } = await shell.run(['eval', 'bad.yaml']);
  expect(code).toBe(2);
  expect(err).toContain('bad.yaml:5: cases[0].checks.regex: ');
  expect(err).toMatch(/bad\.yaml:6: cases\[1\]\.input: /);
  expect(err).toMatch(/bad\.yaml:7: cases\[1\]\.checks: expected at least one check/);
  expect(err).toMatch(/bad\.yaml:6: cases\[1\]: .*extra/);
  await shell.write('broken.yaml', 'cases:\n  - {name: x\n');
  expect((await shell.run(['eval', 'broken.yaml'])).err).toMatch(/broken\.yaml:\d+: /);
  expect((await shell.run(['eval', 'missing.yaml'])).code).toBe(2);
  await shell.write('large.yaml', ' '.repeat(1024 * 1024 + 1));
  for (const endless of ['large.yaml', '/dev/zero'])
    expect(await shell.run(['eval', endless])).toMatchObject({ code: 2, err: expect.stringMatching(/is too large: .*1048576/) });
  expect((await shell.run(['eval'])).err).toContain('FILE is missing');
  expect(shell.server.provider.requests).toEqual([]);
});

test('marks the last answer of a chat', async () => {
  await using shell = await open();
  shell.server.provider.queue({ text: 'A gateway relays.' });
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const out = collector();
  const err = collector();
  const env = { GATEHOUSE_URL: shell.server.url, GATEHOUSE_TOKEN: shell.server.token };
  const chatting = shell.user.run({ args: ['chat'], env, io: { stdin, stdout: out.stream, stderr: err.stream } });
  stdin.write('What is a gateway?\n');
  await out.seen('A gateway relays.');
  stdin.write('/bad It is too short.\n');
  await err.seen('Marked as bad.');
  stdin.write('/good\n');
  await err.seen('Marked as good.');
  stdin.write('/exit\n');
  expect((await chatting).code).toBe(0);
  const { sessions } = await shell.server.client.call('session.list', {});
  const { messages } = await shell.server.client.call('session.history', { conversationRef: sessions[0]?.conversationRef });
  expect(messages[1]?.feedback).toMatchObject({ rating: 'good' });
});

test('prints test cases of answers that were marked', async () => {
  await using shell = await open();
  await shell.server.client.call('agent.execute', { message: 'What is a gateway?', sessionKey: 'a:b' });
  await shell.server.client.call('session.feedback', { sessionKey: 'a:b', rating: 'bad', note: 'It is too short.' });
  const { out, code } = await shell.run(['eval', '--cases-of', 'bad']);
  expect(code).toBe(0);
  expect(out).toContain('input: What is a gateway?');
  expect(out).toContain('It is too short.');
  await shell.write('made.yaml', out);
  shell.server.provider.queue({ text: 'Long.' }, { text: '{"pass": true}' });
  expect((await shell.run(['eval', 'made.yaml'])).code).toBe(0);
  expect((await shell.run(['eval', '--cases-of', 'good'])).out).toBe('cases: []\n');
});
