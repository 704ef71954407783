import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { collector, createUser } from '../testing/test-io.ts';
import { health, rpcAnswers, startServer, token } from '../testing/servers.ts';

/** Creates a user whose daemon file is a small test script. */
async function withDaemon(script: string) {
  const user = await createUser();
  await mkdir(user.home);
  await writeFile(
    join(user.dir, 'main.js'),
    `const { writeFileSync } = require('node:fs');\nconst args = process.argv.slice(2);\nwriteFileSync(${JSON.stringify(join(user.dir, 'args.json'))}, JSON.stringify(args));\nconst say = (value) => console.log(JSON.stringify(value));\n${script}`,
  );
  return { ...user, args: async () => JSON.parse(await readFile(join(user.dir, 'args.json'), 'utf8')) };
}

const finished = 'say({ progress: { done: 1, total: 2 } }); say({ result: { file: "/b/data.db", bytes: 2048, previous: "/h/old.db" } });';

test('backup of a stopped daemon uses the backup mode', async () => {
  await using user = await withDaemon(finished);
  expect(await user.run({ args: ['backup', 'copy.db'] })).toEqual({ code: 0, out: 'Wrote /b/data.db, 2.0 KiB.\n', err: '' });
  expect(await user.args()).toEqual(['--home', user.home, '--backup', join(user.dir, 'copy.db')]);
  expect(JSON.parse((await user.run({ args: ['backup', '-o', 'json'] })).out)).toMatchObject({ file: '/b/data.db', bytes: 2048 });
  expect(await user.args()).toEqual(['--home', user.home, '--backup']);
});

test('backup of a running daemon is requested from it', async () => {
  await using user = await withDaemon('process.exit(9)');
  await using control = await startServer(
    (_seen, response) => void response.end('{"progress":{"done":1,"total":1}}\n{"result":{"file":"/b/live.db","bytes":10}}\n'),
    join(user.home, 'gatehouse.sock'),
  );
  expect(await user.run({ args: ['backup', 'live.db'] })).toMatchObject({ code: 0, out: 'Wrote /b/live.db, 10 B.\n' });
  expect(control.requests).toMatchObject([{ method: 'POST', path: '/control/backup', body: JSON.stringify({ file: join(user.dir, 'live.db') }) }]);
});

test('an error or a missing result of the job is a failure', async () => {
  await using failing = await withDaemon('say({ error: { code: "conflict", message: "The file exists.", hint: "Choose another." } });');
  expect(await failing.run({ args: ['backup'] })).toMatchObject({ code: 1, err: 'error: The file exists.\nhint: Choose another.\n' });
  await using silent = await withDaemon('console.error("broken"); process.exit(3)');
  expect(await silent.run({ args: ['backup'] })).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^broken\nerror: Backup ended without a result/),
  });
});

test('restore needs a confirmation and a stopped daemon', async () => {
  await using user = await withDaemon(finished);
  expect(await user.run({ args: ['restore', 'copy.db'] })).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
  expect(await user.run({ args: ['restore', 'copy.db', '--yes'] })).toMatchObject({
    code: 0,
    out: 'Restored /b/data.db, 2.0 KiB. The former data is in /h/old.db.\n',
  });
  expect(await user.args()).toEqual(['--home', user.home, '--restore', join(user.dir, 'copy.db')]);
  await using _control = await startServer(() => ({ address: null, pid: 77, version: '0.1.0' }), join(user.home, 'gatehouse.sock'));
  expect(await user.run({ args: ['restore', 'copy.db', '--yes'] })).toMatchObject({
    code: 1,
    err: expect.stringContaining('is running (process 77)'),
  });
});

test('doctor combines the checks of the daemon file with those of the running daemon', async () => {
  await using server = await startServer(rpcAnswers({ 'system.ping': { pong: true, ts: 1 } }, { '/health': health }));
  await using user = await withDaemon(
    'say({ checks: [{ name: "node", status: "ok", detail: "v26.10.0" }, { name: "permissions", status: "warn", detail: "0755", hint: "chmod 700" }] });',
  );
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token };
  const { code, out } = await user.run({ args: ['doctor'], env });
  expect(code).toBe(0);
  expect(out).toBe(
    `ok    node         v26.10.0\nwarn  permissions  0755\n      chmod 700\nok    daemon       version 0.1.0 at ${server.url}: ok\nok    token        accepted\n`,
  );
  expect(await user.args()).toEqual(['--home', user.home, '--doctor']);
});

test('doctor needs no token for the owner when tokens are in config.yaml', async () => {
  await using user = await withDaemon('say({ checks: [] });');
  const info = { address: 'http://127.0.0.1:1', pid: 1, version: '0.1.0' };
  const answers = rpcAnswers({ 'providers.list': { providers: [] } }, { '/control/info': info, '/health': health });
  await using _control = await startServer(answers, join(user.home, 'gatehouse.sock'));
  const { code, out } = await user.run({ args: ['doctor'] });
  expect(code).toBe(0);
  expect(out).toMatch(/^ok +daemon +version 0\.1\.0 at http:\/\/127\.0\.0\.1:1: ok\nok +token +not required on the owner-only socket\n$/);
});

test("doctor exits with 1 when a check fails or can't run", async () => {
  await using failing = await withDaemon('say({ checks: [{ name: "database", status: "fail", detail: "damaged" }] });');
  expect((await failing.run({ args: ['doctor'], env: { GATEHOUSE_URL: 'http://127.0.0.1:1', GATEHOUSE_TOKEN: token } })).code).toBe(1);
  await using unbuilt = await createUser();
  const { code, out } = await unbuilt.run({ args: ['doctor', '-o', 'json'] });
  expect(code).toBe(1);
  expect(JSON.parse(out).checks).toMatchObject([
    { status: 'fail', hint: expect.stringContaining('npm start') },
    { name: 'token', status: 'warn' },
  ]);
});

test('a crashed check is reported as such, not as a problem of the installation', async () => {
  const env = { GATEHOUSE_URL: 'http://127.0.0.1:1', GATEHOUSE_TOKEN: token };
  for (const [script, expected] of [
    ['console.error("minified\\nat main.js:3"); process.exit(13)', 'exited with code 13. Output: at main.js:3'],
    ['', 'exited without a report'],
    ['say({ checks: [{ name: "node" }] })', 'exited without a report'],
    ['say({ checks: [] }); process.exit(1)', 'exited with code 1.'],
  ] as const) {
    await using user = await withDaemon(script);
    const { code, out, err } = await user.run({ args: ['doctor', '--json'], env });
    expect({ code, err }).toEqual({ code: 1, err: '' });
    expect(JSON.parse(out).checks[0]).toMatchObject({ name: 'daemon file', status: 'fail', detail: expect.stringContaining(expected) });
  }
});

test('doctor reports a file that is not in force and keys that need a restart', async () => {
  await using user = await withDaemon('say({ checks: [] });');
  const status = { configFault: '/h/config.yaml:3:1: gatewy: unknown key', restartNeeded: ['gateway.port', 'storage.driver'] };
  const answers = rpcAnswers({ 'system.ping': { pong: true, ts: 1 }, 'gateway.status': status }, { '/health': health });
  await using server = await startServer(answers);
  const { out } = await user.run({ args: ['doctor'], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } });
  expect(out).toMatch(/^warn +in force +an earlier configuration, because the file cannot be used\n +\/h\/config\.yaml:3:1: gatewy: unknown key$/m);
  expect(out).toMatch(/^warn +in force +a restart is needed for gateway\.port, storage\.driver$/m);
});

test('doctor reports the state of each model provider of the running daemon', async () => {
  const providers = [
    {
      provider: 'local',
      state: 'refused',
      sinceMs: 1,
      untilMs: Date.now() + 600_000,
      cause: 'Provider "local" answered 401: Incorrect API key\u202e',
    },
    { provider: 'other', state: 'ok', sinceMs: 1 },
  ];
  const sick = { ...health, checks: { models: { status: 'degraded', detail: 'refused' } } };
  const answers = rpcAnswers({ 'system.ping': { pong: true, ts: 1 }, 'providers.list': { providers } }, { '/health': sick });
  await using server = await startServer(answers);
  await using user = await withDaemon('say({ checks: [] });');
  const { code, out } = await user.run({ args: ['doctor'], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } });
  expect(code).toBe(0);
  expect(out).toMatch(/^warn +provider +local: refused the credentials, next call in .*401: Incorrect API key\\u202e$/m);
  expect(out).toMatch(/^ +`gatehouse call providers.retry --provider local`/m);
  expect(out).toMatch(/^ok +provider +other$/m);
  expect(out).not.toContain('models');
});

test('a stopped daemon is a warning, a wrong token a failure', async () => {
  await using user = await withDaemon('say({ checks: [] });');
  const stopped = await user.run({ args: ['doctor', '-o', 'json'], env: { GATEHOUSE_URL: 'http://127.0.0.1:1', GATEHOUSE_TOKEN: token } });
  expect(stopped.code).toBe(0);
  expect(JSON.parse(stopped.out).checks).toMatchObject([{ name: 'daemon', status: 'warn', detail: 'not running' }]);
  await using server = await startServer(({ path }, response) => (path === '/health' ? health : void response.writeHead(401).end('{}')));
  const refused = await user.run({ args: ['doctor', '-o', 'json'], env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token } });
  expect(refused.code).toBe(1);
  expect(JSON.parse(refused.out).checks).toMatchObject([
    { name: 'daemon', status: 'ok' },
    { name: 'token', status: 'fail' },
  ]);
});

test('start replaces itself with the daemon and passes its flags', async () => {
  await using user = await withDaemon('');
  const replaced: unknown[] = [];
  const outcome = await user.run({
    args: ['start', '--home', '/h', '--port', '0'],
    env: { GATEHOUSE_TOKEN: token },
    io: {
      replaceProcess(...given) {
        replaced.push(given);
        throw new Error('this process is gone');
      },
    },
  });
  expect(replaced).toEqual([[process.execPath, [join(user.dir, 'main.js'), '--home', '/h', '--port', '0'], { GATEHOUSE_TOKEN: token }]]);
  expect(outcome.code).toBe(1);
});

test('start without a built daemon says how to build it', async () => {
  await using user = await createUser();
  expect(await user.run({ args: ['start'] })).toMatchObject({ code: 1, err: expect.stringMatching(/not built.*\nhint: .*npm start/) });
});

const launcher = fileURLToPath(new URL('../testing/launch.ts', import.meta.url));

test.each(['replace', 'child'])('start (%s): signals reach the daemon, and its exit code is returned', async (way) => {
  await using user = await withDaemon("process.on('SIGTERM', () => process.exit(42)); console.log('ready'); setInterval(() => {}, 1000);");
  const started = spawn(process.execPath, [launcher, way, join(user.dir, 'main.js'), 'start'], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => started.stdout.once('data', resolve));
  started.kill('SIGTERM');
  expect(await new Promise((resolve) => started.once('close', resolve))).toBe(42);
});

const imported = {
  place: 'postgres://db:5432/gatehouse',
  imported: true,
  tables: 61,
  rows: 12_345,
  replacedTexts: 2,
  digest: 'ab12',
  dataDir: '/h/data',
  keyFile: '/h/install.key',
  tokenFile: '/h/token',
  folders: ['/h/workspaces', '/h/media'],
};

test('storage import shows its progress and the next steps', async () => {
  const progress = { done: 5, total: 20, phase: 'copy', table: 'message', rows: 5, tableRows: 9 };
  await using user = await withDaemon(`say({ progress: ${JSON.stringify(progress)} }); say({ result: ${JSON.stringify(imported)} });`);
  const shown = collector();
  const terminal = Object.assign(shown.stream, { isTTY: true as const });
  const { code, err } = await user.run({ args: ['storage', 'import', '--to', '${DATABASE_URL}'], io: { stdout: terminal } });
  const out = shown.text();
  expect(code).toBe(0);
  expect(err).toContain('Import 25 % · copying message, row 5 of 9');
  expect(await user.args()).toEqual(['--home', user.home, '--storage-import', '--to', '${DATABASE_URL}']);
  expect(out).toContain(
    'Imported 12345 rows of 61 tables into postgres://db:5432/gatehouse. Every row, the counts and all sums of money are equal (SHA-256 ab12).',
  );
  expect(out).toContain('2 texts held the character U+0000');
  expect(out).toContain('1. In config.yaml set storage.driver to "postgres" and storage.url to "${DATABASE_URL}"');
  expect(out).toContain('2. Give each daemon on this database the install key of this home: GATEHOUSE_MASTER_KEY_FILE=/h/install.key');
  expect(out).toContain('3. For a standby, copy /h/token into its home.');
  expect(out).toContain(
    '4. For a standby, move these folders to a path that both machines mount, and set storage.sharedPath to it: /h/workspaces, /h/media.',
  );
  expect(out).toContain('No daemon starts on it as long as /h/data/imported-into-postgres.json exists.');
  expect(JSON.parse((await user.run({ args: ['storage', 'import', '--json'] })).out)).toEqual(imported);
  expect(await user.args()).toEqual(['--home', user.home, '--storage-import']);
});

test('storage import says what was done before, and needs a stopped daemon', async () => {
  const earlier = { ...imported, imported: false, replacedTexts: 0, folders: [], keyFile: undefined, tokenFile: undefined };
  await using user = await withDaemon(`say({ result: ${JSON.stringify(earlier)} });`);
  const { out } = await user.run({ args: ['storage', 'import'] });
  expect(out).toContain('This data is in postgres://db:5432/gatehouse already');
  expect(out).toContain('the present GATEHOUSE_MASTER_KEY');
  expect(out).not.toMatch(/standby|sharedPath|U\+0000/);
  await using _control = await startServer(
    () => ({ address: 'http://127.0.0.1:4766', pid: 77, version: '0.1.0' }),
    join(user.home, 'gatehouse.sock'),
  );
  expect(await user.run({ args: ['storage', 'import'] })).toMatchObject({
    code: 1,
    err: expect.stringContaining('is running (process 77 at http://127.0.0.1:4766)'),
  });
});

test('storage import of a home whose key is in the keyring says how to get it', async () => {
  await using user = await withDaemon(`say({ result: ${JSON.stringify({ ...imported, keyFile: undefined, keyIsInKeyring: true })} });`);
  const { out } = await user.run({ args: ['storage', 'import'] });
  expect(out).toContain(
    '2. Give each daemon on this database the install key of this home, which is in the keyring of the system: "gatehouse secrets key --file"',
  );
});

test.each([
  [[], 'show', { place: 'file', moved: false }, 'The install key is in /h/install.key.'],
  [
    [],
    'show',
    { place: 'keyring', moved: false },
    'The install key is in the keyring of the system, entry 0123456789abcdef of the service gatehouse.',
  ],
  [['--keyring'], 'keyring', { place: 'keyring', moved: true }, 'Moved the install key into the keyring of the system'],
  [['--file'], 'file', { place: 'file', moved: true }, 'Moved the install key into /h/install.key. The keyring still has it'],
])('secrets key %j passes %s to the daemon file and prints the place', async (flags, to, state, text) => {
  const result = { ...state, account: '0123456789abcdef', keyFile: '/h/install.key' };
  await using user = await withDaemon(`say({ result: ${JSON.stringify(result)} });`);
  const { code, out } = await user.run({ args: ['secrets', 'key', ...flags] });
  expect([code, await user.args()]).toEqual([0, ['--home', user.home, '--install-key', to]]);
  expect(out).toContain(text);
  expect(JSON.parse((await user.run({ args: ['secrets', 'key', ...flags, '--json'] })).out)).toEqual(result);
});

test('secrets key shows why the key was not moved, and refuses two places', async () => {
  await using user = await withDaemon(`say({ error: { code: 'internal', message: 'the keyring is locked' } });`);
  expect(await user.run({ args: ['secrets', 'key', '--keyring'] })).toMatchObject({ code: 1, err: expect.stringContaining('the keyring is locked') });
  expect(await user.run({ args: ['secrets', 'key', '--keyring', '--file'] })).toMatchObject({
    code: 2,
    err: expect.stringContaining('Expected one of --keyring and --file'),
  });
});
