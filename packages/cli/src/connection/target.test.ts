import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';
import { health, rpcAnswers, startServer, token } from '../testing/servers.ts';

const ping = rpcAnswers({ 'system.ping': { pong: true, ts: 1 } }, { '/health': health });
const call = ['call', 'system.ping', '--output', 'json'];
const pong = '{"pong":true,"ts":1}\n';

async function withHome(config: string) {
  const user = await createUser();
  await mkdir(user.home);
  await writeFile(join(user.home, 'token'), `${token}\n`);
  await writeFile(join(user.home, 'config.yaml'), config);
  return user;
}

test('the home folder provides address and token', async () => {
  await using server = await startServer(ping);
  await using user = await withHome(`gateway:\n  port: ${new URL(server.url).port}\n`);
  expect(await user.run({ args: call })).toEqual({ code: 0, out: pong, err: '' });
  expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${token}`);
});

test('a running daemon reports its address', async () => {
  await using server = await startServer(ping);
  await using user = await withHome('gateway:\n  port: 1\n');
  await using control = await startServer(() => ({ address: server.url, pid: 1, version: '0.1.0' }), join(user.home, 'gatehouse.sock'));
  expect(await user.run({ args: call })).toMatchObject({ code: 0, out: pong });
  expect(control.requests.map(({ path }) => path)).toEqual(['/control/info']);
});

test('calls use the owner-only socket instead of TLS, with the token', async () => {
  await using user = await withHome('');
  const info = { address: 'https://0.0.0.0:4766', pid: 1, version: '0.1.0' };
  await using control = await startServer(
    (seen, response) => (seen.path === '/control/info' ? info : ping(seen, response)),
    join(user.home, 'gatehouse.sock'),
  );
  expect(await user.run({ args: call })).toMatchObject({ code: 0, out: pong });
  expect(control.requests[1]).toMatchObject({ path: '/rpc', headers: { authorization: `Bearer ${token}` } });
});

test('without a listener the owner-only socket carries the calls, and no token', async () => {
  await using user = await withHome('gateway: { enabled: false }\n');
  const info = { address: null, pid: 1, version: '0.1.0' };
  await using control = await startServer(
    (seen, response) => (seen.path === '/control/info' ? info : ping(seen, response)),
    join(user.home, 'gatehouse.sock'),
  );
  expect(await user.run({ args: call })).toMatchObject({ code: 0, out: pong });
  expect(control.requests[1]).toMatchObject({ path: '/rpc', method: 'POST' });
  expect(control.requests[1]?.headers.authorization).toBeUndefined();
});

test('without any token, where config.yaml lists them, the owner-only socket carries the calls', async () => {
  await using user = await createUser();
  const info = { address: 'http://127.0.0.1:1', pid: 1, version: '0.1.0' };
  await using control = await startServer(
    (seen, response) => (seen.path === '/control/info' ? info : ping(seen, response)),
    join(user.home, 'gatehouse.sock'),
  );
  expect(await user.run({ args: call })).toMatchObject({ code: 0, out: pong });
  expect(control.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([
    ['/control/info', undefined],
    ['/rpc', undefined],
  ]);
  // An explicit token is used, with the address.
  expect((await user.run({ args: call, env: { GATEHOUSE_TOKEN: token } })).code).toBe(3);
});

test('flags take precedence over the environment, the environment over the home folder', async () => {
  await using server = await startServer(ping);
  await using user = await withHome('gateway:\n  port: 1\n');
  await writeFile(join(user.dir, 'other-token'), 'another-token-of-more-than-32-characters');
  const port = new URL(server.url).port;
  expect((await user.run({ args: call, env: { GATEHOUSE_PORT: port } })).code).toBe(0);
  expect((await user.run({ args: call, env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: 'from-the-environment' } })).code).toBe(0);
  expect(
    (
      await user.run({
        args: [...call, '--url', server.url, '--token-file', 'other-token'],
        env: { GATEHOUSE_URL: 'http://127.0.0.1:1', GATEHOUSE_TOKEN: 'x' },
      })
    ).code,
  ).toBe(0);
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
    `Bearer ${token}`,
    'Bearer from-the-environment',
    'Bearer another-token-of-more-than-32-characters',
  ]);
  expect((await user.run({ args: [...call, '--home', user.home], env: { GATEHOUSE_URL: server.url } })).code).toBe(3);
});

test('the token of the home folder is never sent to another host', async () => {
  await using user = await withHome('');
  const outcome = await user.run({ args: [...call, '--url', 'http://gateway.example:4766'] });
  expect(outcome.code).toBe(4);
  expect(outcome.err).toContain('never sent to other hosts');
});

test.each([
  [['--url', 'gateway.example'], 2, 'is not an address'],
  [['--url', 'http://user:secret@127.0.0.1'], 2, 'must not contain a password'],
  [['--token-file', 'nowhere'], 2, 'File not found: nowhere'],
  [['--token-file', 'config.yaml'], 2, 'does not contain a token'],
])('%j is refused', async (flags, code, expected) => {
  await using user = await withHome('');
  await writeFile(join(user.dir, 'config.yaml'), 'two words');
  const outcome = await user.run({ args: [...call, ...flags], env: flags[0] === '--token-file' ? { GATEHOUSE_URL: 'http://127.0.0.1:1' } : {} });
  expect(outcome).toMatchObject({ code, out: '' });
  expect(outcome.err).toContain(expected);
});

test('a stopped daemon is reported in one line with a hint, or as JSON', async () => {
  const server = await startServer(ping);
  await server[Symbol.asyncDispose]();
  await using user = await withHome(`gateway: { port: ${new URL(server.url).port} }`);
  const human = await user.run({ args: ['status'] });
  expect(human.code).toBe(3);
  expect(human.err).toMatch(/^error: The connection to http:\/\/127\.0\.0\.1:\d+ failed: .*ECONNREFUSED.*\nhint: .*gatehouse start.*\n$/);
  const machine = await user.run({ args: ['status', '--output', 'json'] });
  expect(JSON.parse(machine.err)).toMatchObject({ error: { code: 'connection_failed', hint: expect.stringContaining('gatehouse start') } });
});

test('a missing token names the places that were checked', async () => {
  await using user = await createUser();
  const outcome = await user.run({ args: ['status'] });
  expect(outcome.code).toBe(4);
  expect(outcome.err).toContain(join(user.home, 'token'));
  expect(outcome.err).toContain('config.yaml');
});
