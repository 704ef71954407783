import { readFile } from 'node:fs/promises';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { cliExitCodes, exitCode } from './exit-codes.ts';
import { createUser } from './testing/test-io.ts';
import { health, rpcAnswers, startServer, token } from './testing/servers.ts';
import { version } from './version.ts';

const status = {
  pid: 4242,
  version: '0.1.0',
  uptime: 12.5,
  memoryUsage: 98_000_000,
  nodeVersion: 'v26.10.0',
  configPaths: ['/h/config.yaml'],
  sections: [],
  restartNeeded: ['gateway.port'],
  configFault: '/h/config.yaml:3:1: gatewy: unknown key',
  address: 'http://127.0.0.1:4766',
  connections: { http: 1, websocket: 2 },
  turns: { running: 3, queued: 4 },
  storage: { path: '/h/data/gatehouse.db', bytes: 4096, walBytes: 0, schemaVersion: 1, state: 'read_only' },
};

test('the version matches the package', async () => {
  const manifest: { version: string } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
  expect(version).toBe(manifest.version);
  await using user = await createUser();
  expect((await user.run({ args: ['--version'] })).out).toBe(`${version}\n`);
});

test('every exit code has a description', () => {
  expect(cliExitCodes.map(({ code }) => code)).toEqual(Object.values(exitCode));
});

test('help names the commands and the exit codes', async () => {
  await using user = await createUser();
  const { code, out } = await user.run({ args: ['--help'] });
  expect(code).toBe(0);
  for (const command of [
    'start',
    'status',
    'chat',
    'call',
    'logs',
    'sessions',
    'context',
    'memory',
    'usage',
    'agents',
    'workspace',
    'tools',
    'approvals',
    'skills',
    'mcp',
    'audit',
    'models',
    'media',
    'tokens',
    'backup',
    'restore',
    'doctor',
    'explain',
    'trace',
    'health',
  ])
    expect(out).toMatch(new RegExp(`^  ${command} `, 'm'));
  expect(out).toContain('No daemon responds');
});

test.each([[['strat']], [['status', '--colour']], [['restore']], [['status', '--output', 'xml']]])('%j is a wrong command line', async (args) => {
  await using user = await createUser();
  const outcome = await user.run({ args });
  expect(outcome).toMatchObject({ code: 2, out: '' });
  expect(outcome.err).toMatch(/^error: /);
});

test('--json is --output json, for failures too', async () => {
  await using server = await startServer(rpcAnswers({ 'gateway.status': status }, { '/health': health }));
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token };
  expect((await user.run({ args: ['status', '--json'], env })).out).toBe((await user.run({ args: ['status', '-o', 'json'], env })).out);
  expect(JSON.parse((await user.run({ args: ['sessions', '--json'], env })).err)).toMatchObject({ error: { code: 'method_not_found' } });
  // After `call`, it holds the parameters.
  expect((await user.run({ args: ['call', 'gateway.status', '--json', '{'], env })).err).toMatch(/^error: /);
});

test('--jq prints what a filter makes of the JSON output, strings as they are', async () => {
  const named = { ...status, configFault: 'three\u001b[2J\nlines\u202e' };
  await using server = await startServer(rpcAnswers({ 'gateway.status': named }, { '/health': health }));
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token };
  const jq = (...args: readonly string[]) => user.run({ args, env });
  expect(await jq('status', '--jq', '.status.turns | "\\(.running) of \\(.running + .queued)", .')).toMatchObject({
    code: 0,
    out: '3 of 7\n{"running":3,"queued":4}\n',
  });
  // Neither control characters nor marks that change the direction reach the terminal.
  expect((await jq('status', '--jq=.status.configFault')).out).toBe('three\\u001b[2J\nlines\\u202e\n');
  expect((await jq('status', '--jq', 'empty')).out).toBe('');
  expect((await jq('call', 'gateway.status', '--jq', '.uptime * 2')).out).toBe('25\n');
  const asked = server.requests.length;
  const broken = await jq('status', '--jq', '.status[');
  expect(broken).toMatchObject({ code: 2, out: '' });
  expect(broken.err).toMatch(/^error: --jq: syntax error.*\nhint: The language of filters: https:/);
  expect(server.requests).toHaveLength(asked);
  expect(await jq('status', '--jq', '.health | error("no")')).toMatchObject({ code: 1, out: '', err: 'error: --jq: no\n' });
});

test('a misspelled command suggests the nearest', async () => {
  await using user = await createUser();
  expect((await user.run({ args: ['strat'] })).err).toContain('start');
});

test('no flag accepts the token itself', async () => {
  await using user = await createUser();
  expect((await user.run({ args: ['status', '--token', token] })).code).toBe(2);
});

test("status shows health and, with an admin token, the daemon's state", async () => {
  await using server = await startServer(rpcAnswers({ 'gateway.status': status }, { '/health': health }));
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token };
  const { code, out } = await user.run({ args: ['status'], env });
  expect(code).toBe(0);
  expect(out).toContain(`Gatehouse 0.1.0 at ${server.url}: ok, up 2 min\n`);
  expect(out).toMatch(/^turns +3 running, 4 waiting$/m);
  expect(out).toMatch(/^not in force +.*gatewy: unknown key$/m);
  expect(out).toMatch(/^restart +needed for gateway\.port: gatehouse call gateway\.restart$/m);
  expect(out).toMatch(/^storage +\/h\/data\/gatehouse\.db, 4\.0 KiB, READ ONLY$/m);
  expect(JSON.parse((await user.run({ args: ['status', '-o', 'json'], env })).out)).toEqual({ url: server.url, health, status });
});

test('status shows the nodes of a shared database, and what a standby is', async () => {
  const nodes = [
    { self: true, role: 'active', state: 'live', version: '0.1.0', address: 'http://127.0.0.1:1', leaseLeftMs: 9_000 },
    { role: 'standby', state: 'lapsed', version: '0.2.0', address: null, leaseLeftMs: -2_000 },
  ];
  await using server = await startServer(rpcAnswers({ 'gateway.status': { ...status, nodes } }, { '/health': { ...health, role: 'active' } }));
  await using user = await createUser();
  const { out } = await user.run({ args: ['status', '--url', server.url], env: { GATEHOUSE_TOKEN: token } });
  expect(out).toMatch(/^active node +http:\/\/127\.0\.0\.1:1 \(this one\), version 0\.1\.0, live, lease ends in 9 s$/m);
  expect(out).toMatch(/^standby node +no address, version 0\.2\.0, lapsed, lease ended 2 s ago$/m);

  await using standby = await startServer(rpcAnswers({}, { '/health': { ...health, status: 'standby', role: 'standby' } }));
  const waiting = await user.run({ args: ['status', '--url', standby.url], env: { GATEHOUSE_TOKEN: token } });
  expect([waiting.code, waiting.out]).toEqual([0, expect.stringContaining('another node is active; ask that one')]);
});

test('status of a daemon that is stopping or has no database shows its health, and why there is no more', async () => {
  const stopping = { error: { code: -32006, message: 'The server is shutting down', data: { code: 'unavailable' } } };
  await using server = await startServer(rpcAnswers({ 'gateway.status': stopping }, { '/health': { ...health, status: 'draining' } }));
  await using user = await createUser();
  const { code, out } = await user.run({ args: ['status', '--url', server.url], env: { GATEHOUSE_TOKEN: token } });
  expect([code, out]).toEqual([0, expect.stringMatching(/: draining, up 2 min\ndetails +The server is shutting down$/m)]);
});

test('status of a daemon without a listener shows no address', async () => {
  await using server = await startServer(rpcAnswers({ 'gateway.status': { ...status, address: null } }, { '/health': health }));
  await using user = await createUser();
  const { code, out } = await user.run({ args: ['status', '--url', server.url], env: { GATEHOUSE_TOKEN: token } });
  expect([code, out.split('\n')[0]]).toEqual([0, expect.stringContaining('at its owner-only socket, without a listener: ok')]);
});

test('status with a non-admin token shows health only', async () => {
  const narrow = { error: { code: -32603, message: "Insufficient scope: requires 'admin'", data: { code: 'insufficient_scope' } } };
  await using server = await startServer(rpcAnswers({ 'gateway.status': narrow }, { '/health': health }));
  await using user = await createUser();
  const { code, out } = await user.run({ args: ['status'], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } });
  expect(code).toBe(0);
  expect(out).toMatch(/^details +need a token with scope admin$/m);
});

test.each([
  ['nosuch', '`gatehouse --help` lists'],
  ['statsu', 'Did you mean `gatehouse status`?'],
  ['hlep', 'Did you mean `gatehouse help`?'],
  ['upload', 'Did you mean `gatehouse media upload`?'],
  ['search', 'Did you mean `gatehouse sessions search` or `gatehouse knowledge search` or `gatehouse memory search`'],
  ['aprove', 'Did you mean `gatehouse approvals approve`?'],
  ['agents.list', '`gatehouse call agents.list`'],
  ['version', '`gatehouse --version`'],
  ['login', 'GATEHOUSE_TOKEN'],
])('%s is not a command, and the hint says what to use', async (word, hint) => {
  await using user = await createUser();
  expect(await user.run({ args: [word] })).toEqual({
    code: 2,
    out: '',
    err: expect.stringContaining(`error: Unknown command \`${word}\`.\nhint: `),
  });
  expect(JSON.parse((await user.run({ args: [word, '--json'] })).err)).toMatchObject({
    error: { code: 'usage', hint: expect.stringContaining(hint) },
  });
});

test('errors do not show raw validator or system messages', async () => {
  await using server = await startTestServer();
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  const err = async (...args: string[]) => (await user.run({ args, env })).err;
  expect(await err('runs', 'steer', '', 'x')).toBe('error: target: expected at least 1 character\n');
  expect(await err('tokens', 'create', '--scope', 'bogus')).toMatch(/^error: scopes\.0: expected "rpc" or "api" or /);
  expect(await err('skills', 'create', './none')).toMatch(/^error: Cannot read .*\/none: it does not exist\.\n/);
  expect(await err('agents', 'create', 'a', '--config', '@none')).toMatch(/^error: Cannot read .*\/none: it does not exist\.\n/);
  expect(await err('call', 'system.ping', '--json', '@none')).toMatch(/^error: Cannot read .*\/none: it does not exist\.\n/);
});
