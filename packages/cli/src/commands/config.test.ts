import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { rpcAnswers, startServer, token } from '../testing/servers.ts';
import { createUser } from '../testing/test-io.ts';

const digest = 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2';
const done = { restarting: false, changed: ['logging.level'], restart: [], digest, version: 2 };
const read = {
  config: { logging: { level: 'info' }, gateway: { port: 4766, tokens: [{ id: 'ops', secret: '[REDACTED]' }] } },
  sections: [],
  digest,
  restartNeeded: ['gateway.port'],
};
const protectedKey = {
  error: {
    code: -32003,
    message: 'agents.a is a protected key: repeat the call with confirm: true to change it',
    data: { code: 'precondition_failed' },
  },
};
const diff = '--- version 1\n+++ version 2\n@@ -1,1 +1,1 @@\n-a: 1\n+a: 2\n';

async function open(answers: Record<string, unknown>) {
  const server = await startServer(rpcAnswers(answers));
  const user = await createUser();
  return {
    params: () => server.requests.map(({ body }) => JSON.parse(body).params),
    run: (args: string[], input?: string) => {
      const stdin = Object.assign(new PassThrough(), { isTTY: true as const });
      stdin.end(input ?? '');
      return user.run({
        args: ['config', ...args],
        env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token },
        ...(input !== undefined && { io: { stdin } }),
      });
    },
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('get prints values as they are, sections as YAML, and what waits for a restart', async () => {
  await using session = await open({ 'config.read': read });
  // The fake server ignores the section.
  const config = { ...read, config: read.config.gateway };
  await using gateway = await open({ 'config.read': config });
  expect(await gateway.run(['get', 'gateway.port'])).toMatchObject({ code: 0, out: '4766\n', err: 'note: a restart is needed for gateway.port.\n' });
  expect((await gateway.run(['get', 'gateway.tokens[0].id'])).out).toBe('ops\n');
  expect((await gateway.run(['get', 'gateway.tokens.ops.secret'])).out).toBe('[REDACTED]\n');
  expect((await gateway.run(['get', 'gateway.tokens', '--json'])).out).toBe('[{"id":"ops","secret":"[REDACTED]"}]\n');
  expect((await session.run(['get'])).out).toContain('logging:\n  level: info\n');
  expect(await gateway.run(['get', 'gateway.prt'])).toMatchObject({ code: 1, err: expect.stringContaining('gateway.prt has no value') });
  expect((await gateway.run(['get', '..'])).code).toBe(2);
  expect(gateway.params()[0]).toEqual({ section: 'gateway' });
});

test('set and unset say what is in force and what needs a restart', async () => {
  await using session = await open({ 'config.set': { ok: true, previous: 'info', ...done } });
  expect(await session.run(['set', 'logging.level', 'debug'])).toMatchObject({ code: 0, out: 'Set logging.level, and it is in force.\n' });
  expect(await session.run(['unset', 'logging.level'])).toMatchObject({ out: 'Removed logging.level, and it is in force.\n' });
  expect(session.params()).toEqual([
    { path: 'logging.level', value: 'debug' },
    { path: 'logging.level', value: null },
  ]);
  await using later = await open({ 'config.set': { ok: true, ...done, changed: ['gateway.port'], restart: ['gateway.port'] } });
  expect((await later.run(['set', 'gateway.port', '1', '--yes'])).out).toBe(
    'Set gateway.port.\nA restart is needed for gateway.port: `gatehouse call gateway.restart`.\n',
  );
  expect(later.params()).toEqual([{ path: 'gateway.port', value: '1', confirm: true }]);
  await using dry = await open({ 'config.set': { ok: true, ...done, diff, dryRun: true } });
  expect((await dry.run(['set', 'logging.level', 'debug', '--dry-run'])).out).toBe(diff);
});

test('a protected key is asked for, and only a yes changes it', async () => {
  await using session = await open({ 'config.set': protectedKey });
  expect(await session.run(['set', 'agents.a', '{}'])).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
  expect(await session.run(['set', 'agents.a', '{}'], 'n\n')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/agents\.a is a protected key\. Change it\? \[y\/N\][^]*Nothing was changed/),
  });
  await session.run(['set', 'agents.a', '{}'], 'y\n');
  expect(session.params().map(({ confirm }) => confirm)).toEqual([undefined, undefined, undefined, true]);
});

test('diff, history and rollback', async () => {
  const entry = {
    sha: digest,
    version: 2,
    timestamp: 1_790_000_000_000,
    from: 'rpc',
    metadata: { user: 'token:ops', summary: 'changed' },
    message: 'logging.level: changed',
  };
  await using session = await open({
    'config.diff': { diff },
    'config.history': { entries: [entry] },
    'config.rollback': { rolledBack: true, sha: digest, newCommitSha: digest, ...done, diff },
  });
  expect((await session.run(['diff'])).out).toBe(diff);
  expect((await session.run(['history'])).out.split('\n')[1]?.split(/ {2,}/)).toEqual([
    '2',
    digest.slice(0, 12),
    '2026-09-21 14:13 UTC',
    'token:ops',
    'rpc',
    'logging.level: changed',
  ]);
  expect(await session.run(['rollback', 'f2ca1bb'], 'n\n')).toMatchObject({ code: 1, err: expect.stringContaining('+a: 2') });
  expect((await session.run(['rollback', 'f2ca1bb', '--yes'])).out).toBe(`Back to ${digest.slice(0, 12)}, and it is in force.\n`);
});

test('edit applies the text of the editor, asks again after a mistake, and keeps what was not applied', async () => {
  await using user = await createUser();
  const applied: object[] = [];
  const { home } = user;
  await mkdir(home, { mode: 0o700 });
  await using server = await startServer(
    (seen, response) => {
      if (seen.path === '/control/info') return { address: null, pid: 1, version: '0.1.0' };
      const { id, method, params } = JSON.parse(seen.body);
      if (method === 'config.get') return { jsonrpc: '2.0', id, result: { text: 'a: 1\n', digest } };
      applied.push(params);
      if (params.text.includes('wrong'))
        return {
          jsonrpc: '2.0',
          id,
          error: { code: -32602, message: 'Config validation failed: a: is wrong', data: { code: 'invalid_params', issues: [] } },
        };
      response.setHeader('x-test', '1');
      return { jsonrpc: '2.0', id, result: { applied: params.dryRun !== true, ...done, ...(params.dryRun === true && { diff, dryRun: true }) } };
    },
    join(home, 'gatehouse.sock'),
  );
  expect(server.requests).toEqual([]);
  const editor = join(user.dir, 'editor');
  const edit = async (script: string, input: string) => {
    await writeFile(editor, `#!/bin/sh\n${script}\n`);
    await chmod(editor, 0o700);
    const stdin = Object.assign(new PassThrough(), { isTTY: true as const });
    stdin.end(input);
    return user.run({ args: ['config', 'edit', '--home', home], env: { EDITOR: editor, PATH: process.env['PATH'] ?? '' }, io: { stdin } });
  };
  expect(await edit('exit 0', '')).toMatchObject({ code: 0, out: 'Nothing was changed.\n' });
  expect(await edit('echo "a: 2" > "$1"', 'y\n')).toMatchObject({
    code: 0,
    out: 'Applied, and it is in force.\n',
    err: expect.stringContaining('+a: 2'),
  });
  expect(applied).toEqual([
    { text: 'a: 2\n', ifDigest: digest, confirm: true, dryRun: true },
    { text: 'a: 2\n', ifDigest: digest, confirm: true },
  ]);
  const refused = await edit('echo wrong > "$1"', 'n\n');
  expect(refused).toMatchObject({
    code: 1,
    err: expect.stringMatching(/error: Config validation failed: a: is wrong[^]*Edit again\?[^]*Nothing was changed/),
  });
  const kept = /your text is in (\S+)/.exec(refused.err)?.[1] ?? '';
  expect(await readFile(kept, 'utf8')).toBe('wrong\n');
  const failed = await edit('exit 3', '');
  expect(failed).toMatchObject({ code: 1, err: expect.stringContaining('The editor ended with 3') });
  for (const { err } of [refused, failed]) await rm(dirname(/your text is in (\S+)/.exec(err)?.[1] ?? user.dir), { recursive: true });
});

test('edit without a daemon names the file', async () => {
  await using user = await createUser();
  expect(await user.run({ args: ['config', 'edit'] })).toMatchObject({ code: 3, err: expect.stringContaining('gatehouse config check') });
});

test('check prints every problem that the daemon file finds, and exits with 1', async () => {
  await using user = await createUser();
  const daemonEntry = join(user.dir, 'main.mjs');
  const check = async (problems: string[], ...args: string[]) => {
    await writeFile(daemonEntry, `console.log(JSON.stringify({ file: process.argv.slice(2).join(' '), problems: ${JSON.stringify(problems)} }))`);
    return user.run({ args: ['config', 'check', ...args], env: { PATH: process.env['PATH'] ?? '' }, io: { daemonEntry } });
  };
  expect(await check(['f:1:1: a: wrong', 'f:2:1: b: wrong'], 'mine.yaml')).toEqual({ code: 1, out: 'f:1:1: a: wrong\nf:2:1: b: wrong\n', err: '' });
  const whole = `--home ${user.home} --config-check`;
  expect(await check([])).toEqual({ code: 0, out: `${whole} can be used.\n`, err: '' });
  expect(JSON.parse((await check([], 'mine.yaml', '--json')).out)).toEqual({ file: `${whole} ${join(user.dir, 'mine.yaml')}`, problems: [] });
});
