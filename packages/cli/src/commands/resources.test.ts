import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

/** Creates a user of a real server in this process. */
async function open() {
  const server = await startTestServer();
  const user = await createUser();
  return {
    server,
    user,
    run: (...args: string[]) => user.run({ args, env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token } }),
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function cells(out: string): string[][] {
  return out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
}

test('sessions: list, show, export and delete', async () => {
  await using session = await open();
  expect(await session.run('sessions')).toEqual({ code: 0, out: 'No conversations.\n', err: '' });
  session.server.provider.queue({ text: 'A gate\n12  user  forged' }, { text: 'Second answer' });
  await session.server.client.call('agent.execute', { message: 'What is it?', sessionKey: 'ada:desk' });
  const { conversationRef } = await session.server.client.call('agent.execute', { message: 'And now?', sessionKey: 'ada:desk' });

  const [head, row] = cells((await session.run('sessions', 'list')).out);
  expect(head?.slice(0, 4)).toEqual(['TITLE', 'AGENT', 'KIND', 'MESSAGES']);
  expect(row).toMatchObject(['What is it?', 'default', 'dm', '4', expect.stringContaining('UTC'), conversationRef, 'ada:desk']);
  expect(JSON.parse((await session.run('sessions', '--json', '--limit', '1')).out)).toMatchObject({
    total: 1,
    limit: 1,
    sessions: [{ conversationRef }],
  });

  const shown = await session.run('sessions', 'show', 'ada:desk', '--limit', '3');
  expect(shown.out).toMatch(
    /^ada:desk of default, 4 messages, \d+ tokens\n\n2 {2}assistant {2}.* UTC\n {2}A gate\n {2}12 {2}user {2}forged\n\n3 {2}user/,
  );
  expect(shown.out).toContain('4  assistant');
  expect((await session.run('sessions', 'show', conversationRef, '-o', 'json')).out).toContain('Second answer');

  expect(JSON.parse((await session.run('sessions', 'export', conversationRef)).out)).toMatchObject({ messageCount: 4 });
  const file = join(session.user.dir, 'desk.json');
  expect((await session.run('sessions', 'export', 'ada:desk', '--file', 'desk.json')).out).toBe(`Wrote 4 messages to ${file}.\n`);
  expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ conversationRef, messageCount: 4 });
  expect(await session.run('sessions', 'export', 'ada:desk', '--file', 'desk.json')).toMatchObject({
    code: 2,
    err: expect.stringContaining('already exists'),
  });

  expect(await session.run('sessions', 'delete', 'ada:desk')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
  expect((await session.run('sessions', 'delete', 'ada:desk', '--yes')).out).toMatch(/^Deleted ada:desk of default, 4 messages; archived as /);
  expect(await session.run('sessions', 'show', 'ada:desk', '--json')).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringContaining('"code":"not_found"'),
  });
});

test('a partial list shows its position', async () => {
  await using session = await open();
  for (const key of ['ada:a', 'ada:b', 'ada:c']) await session.server.client.call('agent.execute', { message: 'Hi', sessionKey: key });
  const { out } = await session.run('sessions', '--limit', '2', '--offset', '1');
  expect(out).toMatch(/\n2 to 3 of 3\n$/);
  expect((await session.run('sessions', '--offset', '9')).out).toBe('3 conversations, none after 9.\n');
  expect(await session.run('sessions', '--limit', 'x')).toMatchObject({ code: 2, err: expect.stringContaining('non-negative integer') });
  expect(await session.run('sessions', '--limit', '1000')).toMatchObject({ code: 2, err: expect.stringContaining('limit') });
});

test('agents: create, list, show, update, suspend, resume and delete', async () => {
  await using session = await open();
  await writeFile(join(session.user.dir, 'scout.json'), '{"maxSteps": 20, "tools": {"profile": "none"}}');
  const made = await session.run('agents', 'create', 'scout', '--name', 'Scout', '--model', 'mock/mock-other', '--config', '@scout.json');
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^Created scout; its folder is \//) });
  expect(cells((await session.run('agents')).out)).toEqual([
    ['ID', 'NAME', 'MODEL', 'TOOLS', 'STATE', 'FROM'],
    ['default (default)', 'Gate', 'mock/mock-fast', 'minimal', 'active', 'config.yaml'],
    ['scout', 'Scout', 'mock/mock-other', 'none', 'active', 'config.yaml'],
  ]);
  expect((await session.run('agents', 'update', 'scout', '--config', '{"maxSteps": 5}', '--dry-run')).out).toMatch(
    /"maxSteps": 5,[\s\S]*\nNothing was changed\.\n$/,
  );
  expect(await session.run('agents', 'update', 'scout')).toMatchObject({ code: 2, err: expect.stringContaining('Nothing to change') });
  expect((await session.run('agents', 'update', 'scout', '--instructions', 'Be brief.')).out).toBe('Changed scout.\n');
  expect((await session.run('agents', 'suspend', 'scout')).out).toBe('Suspended scout.\n');
  const shown = await session.run('agents', 'show', 'scout');
  expect(shown.out).toMatch(/^agent +scout\nstate +suspended\nfrom +config\.yaml\nworkspace +\//);
  expect(shown.out).toContain('"maxSteps": 20');
  expect(shown.out).toContain('"instructions": "Be brief."');
  expect((await session.run('agents', 'resume', 'scout')).out).toBe('Resumed scout.\n');
  expect(JSON.parse((await session.run('agents', 'delete', 'scout', '-y', '--json')).out)).toEqual({ agentId: 'scout', deleted: true });
  expect(JSON.parse((await session.run('agents', '--json')).out)).toMatchObject([{ agentId: 'default', isDefault: true }]);
});

test('a failure is reported in one line and sets its exit code', async () => {
  await using session = await open();
  const cases: readonly (readonly [args: string[], code: number, expected: string])[] = [
    [['agents', 'show', 'nobody'], 1, 'nobody'],
    [['agents', 'create', 'x', '--config', '{maxSteps'], 2, '--config'],
    [['agents', 'create', 'x', '--config', '[]'], 2, 'expected a JSON object'],
    [['agents', 'create', 'x', '--config', '@nowhere.json'], 2, 'nowhere.json'],
    [['agents', 'create', 'x', '--config', '{"maxStep": 3}'], 2, 'maxStep'],
    [['agents', 'delete', 'default', '--yes'], 1, 'default'],
    [['models', 'tset', 'mock'], 2, 'Did you mean `models test`?'],
    [['sessions', 'everything', '--json'], 2, 'list, show, search, export, fork, compact, reset, erase, delete'],
    [['media', '--colour'], 2, '--colour'],
  ];
  for (const [args, code, expected] of cases) {
    const outcome = await session.run(...args);
    expect([args, outcome.code, outcome.out]).toEqual([args, code, '']);
    expect(outcome.err).toContain(expected);
  }
});

test('models: list and test', async () => {
  await using session = await open();
  const rows = cells((await session.run('models', '--provider', 'mock')).out);
  expect(rows[0]).toEqual(['MODEL', 'CONTEXT', 'OUTPUT', 'READS', '$ IN', '$ OUT', 'PRICE FROM', 'CONFIRMED']);
  expect(rows.find(([name]) => name === 'mock/mock-other')).toMatchObject([
    'mock/mock-other',
    '4096',
    '512',
    expect.stringContaining('text'),
    '3',
    '6',
    'config',
    'yes',
  ]);
  expect((await session.run('models', 'list', '--provider', 'nobody')).out).toBe('No models.\n');
  const all: { provider: string }[] = JSON.parse((await session.run('models', '--json')).out);
  expect(new Set(all.map(({ provider }) => provider))).toContain('mock');
  const found = await session.run('models', 'test', 'mock');
  expect(found.code).toBe(0);
  expect(found.out).toMatch(/^mock: available \(from config\), 2 models\n/);
  expect(found.out).toContain('default uses mock/mock-fast');
  expect(await session.run('models', 'test', 'nobody')).toMatchObject({ code: 1, out: expect.stringMatching(/^nobody: is not configured/) });
});

test('media: upload, list, info, download and delete', async () => {
  await using session = await open();
  expect((await session.run('media')).out).toBe('No files.\n');
  const text = '# Notes\n';
  await writeFile(join(session.user.dir, 'notes.md'), text);
  await writeFile(join(session.user.dir, 'b.txt'), 'plain');
  const uploaded = await session.run('media', 'upload', 'notes.md', 'b.txt');
  expect(uploaded.code).toBe(0);
  const [id = '', second = ''] = uploaded.out.trimEnd().split('\n');
  expect(cells((await session.run('media', '--limit', '1')).out)).toEqual([
    ['ID', 'TYPE', 'SIZE', 'NAME', 'STORED'],
    [second, expect.stringContaining('text/plain'), '5 B', 'b.txt', expect.stringContaining('UTC')],
    ['1 to 1 of 2'],
  ]);
  expect((await session.run('media', 'info', id)).out).toMatch(/^id +\S+\ntype +text\/markdown.*\nsize +8 B \(8 bytes\)\nname +notes\.md\n/);
  expect((await session.run('media', 'download', id, '-')).out).toBe(text);
  // A file with the stored name already exists.
  expect(await session.run('media', 'download', id)).toMatchObject({ code: 2, err: expect.stringContaining('already exists') });
  const copy = join(session.user.dir, 'copy.md');
  expect(JSON.parse((await session.run('media', 'download', id, 'copy.md', '--json')).out)).toEqual({ file: copy, bytes: 8 });
  expect(await readFile(copy, 'utf8')).toBe(text);
  expect((await session.run('media', 'delete', id, '--yes')).out).toBe(`Deleted ${id}.\n`);
  expect(await session.run('media', 'info', id)).toMatchObject({ code: 1, out: '' });
  expect(await session.run('media', 'download', id, 'gone.md')).toMatchObject({ code: 1 });
  expect(await session.run('media', 'upload', 'nowhere.png')).toMatchObject({ code: 2, err: expect.stringContaining('nowhere.png') });
});

test('the owner of the home folder needs no token: everything goes over the owner-only socket', async () => {
  await using session = await open();
  const run = (...args: string[]) => session.user.run({ args: [...args, '--home', session.server.homeDir] });
  expect((await run('status')).out).toMatch(/^Gatehouse .*: ok/);
  // Larger than one socket write.
  const bytes = Buffer.alloc(3_000_000, 'gate ');
  await writeFile(join(session.user.dir, 'large.txt'), bytes);
  const uploaded = await run('media', 'upload', 'large.txt');
  expect(uploaded).toMatchObject({ code: 0, err: '' });
  const id = uploaded.out.trim();
  expect((await run('media', '--limit', '5')).out).toContain('large.txt');
  expect((await run('media', 'download', id, 'copy.txt')).code).toBe(0);
  expect((await readFile(join(session.user.dir, 'copy.txt'))).equals(bytes)).toBe(true);
  expect((await run('media', 'delete', id, '--yes')).code).toBe(0);
  await run('agents', 'create', 'scout');
  const { out } = await run('logs', '--no-follow', '--json');
  expect(
    out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).kind),
  ).toContain('agent:hot_added');
});

test('a file that is too large is refused with the limit, over HTTP and over the socket', async () => {
  await using server = await startTestServer({ config: { media: { maxFileBytes: 1024 } } });
  await using user = await createUser();
  await writeFile(join(user.dir, 'large.txt'), Buffer.alloc(5_000_000, 'gate '));
  const expected = { code: 2, out: '', err: expect.stringContaining('1024 bytes') };
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  expect(await user.run({ args: ['media', 'upload', 'large.txt'], env })).toMatchObject(expected);
  expect(await user.run({ args: ['media', 'upload', 'large.txt', '--home', server.homeDir] })).toMatchObject(expected);
});
