import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { exitCodes } from './exit-codes.ts';

/** The bundle in `npm test`, which starts in a fifth of the time. */
const main = process.env['GATEHOUSE_TEST_MAIN'] ?? join(import.meta.dirname, '../main.ts');
/** Without the dashboard, whose address holds the token. */
const withoutDashboard = join(import.meta.dirname, '../main.ts');
const token = `gh_${'Tk4'.repeat(20)}`;
let cacheDir: string;
let home: string;
const running = new Set<ChildProcess>();

beforeAll(() => {
  cacheDir = mkdtempSync(join(tmpdir(), 'gatehouse-cache-'));
});
afterAll(() => rmSync(cacheDir, { recursive: true, force: true }));
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gatehouse-main-'));
});
afterEach(async () => {
  for (const child of running) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  running.clear();
  rmSync(home, { recursive: true, force: true });
});

interface Daemon {
  readonly child: ChildProcess;
  /** Both streams, as a terminal would show them. */
  output(): string;
  /** Resolves with the printed address. */
  readonly address: Promise<string>;
  readonly exit: Promise<number | null>;
}

interface StartOptions {
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  readonly nodeArgs?: readonly string[];
  readonly program?: string;
}

function launch({ args = ['--home', home, '--port', '0'], env = {}, nodeArgs = [], program = main }: StartOptions = {}): Daemon {
  const child = spawn(process.execPath, [...nodeArgs, program, ...args], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, NODE_COMPILE_CACHE: cacheDir, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let output = '';
  const address = new Promise<string>((resolve, reject) => {
    const look = (chunk: Buffer) => {
      output += chunk.toString();
      const found = /^(http:\/\/\S+)$/m.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('close', () => reject(new Error(`ended without an address: ${output}`)));
  });
  address.catch(() => {});
  const exit = once(child, 'close').then(([code]: unknown[]) => (typeof code === 'number' ? code : null));
  return { child, output: () => output, address, exit };
}

async function failure(options?: StartOptions): Promise<{ readonly code: number | null; readonly output: string }> {
  const daemon = launch(options);
  const code = await daemon.exit;
  return { code, output: daemon.output() };
}

function configure(text: string, mode = 0o600): void {
  writeFileSync(join(home, 'config.yaml'), text, { mode });
  chmodSync(join(home, 'config.yaml'), mode);
}

async function rpc(
  address: string,
  method: string,
  params: object = {},
  secret = token,
): Promise<{ readonly result?: Record<string, unknown>; readonly error?: { readonly message: string } }> {
  const answer = await fetch(`${address}/rpc`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return JSON.parse(await answer.text());
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await expect.poll(condition, { interval: 25 }).toBe(true);
}

describe('the first start', { timeout: 120_000 }, () => {
  test('creates a home, prints a line that works when pasted, ends with the address, and stops cleanly', async () => {
    rmSync(home, { recursive: true });
    const daemon = launch({ program: withoutDashboard });
    const address = await daemon.address;
    const shown = daemon.output();
    const lines = shown
      .trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith('{'));
    expect(lines.at(-1)).toBe(address);
    expect(lines.join('\n')).toMatch(/home {4}.*created now/);
    expect(lines.join('\n')).toMatch(/model {3}offline\/offline .*built in/);
    expect(lines.join('\n')).toMatch(/setup {3}no model is connected yet: run `.*gatehouse setup/);
    const secret = readFileSync(join(home, 'token'), 'utf8').trim();
    expect(shown).not.toContain(secret);
    expect([statSync(home).mode & 0o777, statSync(join(home, 'token')).mode & 0o777, existsSync(join(home, 'config.yaml'))]).toEqual([
      0o700,
      0o600,
      true,
    ]);

    const curl = /curl .*/.exec(shown)?.[0] ?? '';
    const { stdout } = await promisify(execFile)('sh', ['-c', `${curl} --silent --show-error`]);
    expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion', choices: [{ message: { role: 'assistant' } }] });

    daemon.child.kill('SIGTERM');
    expect(await daemon.exit).toBe(exitCodes.ok.code);
    expect(daemon.output()).not.toContain(secret);
  });

  test('with GATEHOUSE_TOKEN creates no other token and shows none', async () => {
    const daemon = launch({ env: { GATEHOUSE_TOKEN: token, GATEHOUSE_HOME: home, GATEHOUSE_PORT: '0' }, args: [] });
    const address = await daemon.address;
    expect((await rpc(address, 'tokens.list')).result).toMatchObject({ tokens: [{ id: 'env', scopes: ['*'] }], total: 1 });
    expect(existsSync(join(home, 'token'))).toBe(false);
    expect(daemon.output()).toContain('Bearer $GATEHOUSE_TOKEN');
    expect(daemon.output()).not.toContain(token);
  });

  test('fixes the permissions of a configuration with secrets that others could read, and reports it', async () => {
    configure(`gateway: {tokens: [{id: ops, secret: ${token}, scopes: []}], host: 127.0.0.1}\nlogging: {modules: {gatway: debug}}\n`, 0o644);
    const daemon = launch();
    await daemon.address;
    expect(statSync(join(home, 'config.yaml')).mode & 0o777).toBe(0o600);
    expect(daemon.output()).toMatch(/warning .*config\.yaml holds secrets and had mode 0644/);
    expect(daemon.output()).toMatch(/warning .*"ops"/);
    expect(daemon.output()).toMatch(/warning .*no module "gatway"/);
    expect(daemon.output()).not.toContain(token);
  });
});

describe('a start that fails exits with a code and a message', { timeout: 120_000 }, () => {
  test.each([
    [['--prot', '1'], /gatehouse: Unknown option '--prot'/],
    [['--port', '70000'], /gatehouse: --port: expected an integer from 0 to 65535/],
    [['--port', 'x'], /gatehouse: --port: expected an integer/],
    [['stop'], /gatehouse: Unexpected argument "stop"/],
  ])('%j', async (args, expected) => {
    expect(await failure({ args })).toEqual({ code: exitCodes.usage.code, output: expect.stringMatching(expected) });
  });

  test('--help and --version are not failures', async () => {
    expect(await failure({ args: ['--help'] })).toEqual({ code: 0, output: expect.stringContaining('--home DIR') });
    expect(await failure({ args: ['--version'] })).toEqual({ code: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });

  test('others have access to the home', async () => {
    chmodSync(home, 0o755);
    expect(await failure()).toEqual({
      code: exitCodes.home.code,
      output: `gatehouse: ${home}: other users of this machine have access (mode 0755), and it holds secrets; close it with: chmod 700 ${home}\n`,
    });
  });

  test('the folder that daemons share is not mounted, also for one that would stand by', async () => {
    configure(`storage: {driver: postgres, url: 'postgres://127.0.0.1:1/none', sharedPath: ${home}/nowhere}`);
    expect(await failure()).toEqual({
      code: exitCodes.home.code,
      output: `gatehouse: ${home}/nowhere: does not exist, and storage.sharedPath names it; mount or create it\n`,
    });
  });

  test('the home is a file', async () => {
    writeFileSync(join(home, 'file'), '');
    expect(await failure({ args: ['--home', join(home, 'file')] })).toMatchObject({
      code: exitCodes.home.code,
      output: expect.stringContaining('expected a folder, found a file'),
    });
  });

  test('the port is in use', async () => {
    const other = createServer();
    await new Promise<void>((done) => void other.listen(0, '127.0.0.1', done));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    expect(await failure({ args: ['--home', home, '--port', String(port)] })).toMatchObject({
      code: exitCodes.unavailable.code,
      output: expect.stringMatching(new RegExp(`gatehouse: 127\\.0\\.0\\.1:${port} is taken by another process`)),
    });
    other.close();
  });

  test('the database is damaged', async () => {
    mkdirSync(join(home, 'data'), { mode: 0o700 });
    writeFileSync(join(home, 'data', 'gatehouse.db'), 'this is not a database, '.repeat(1000));
    expect(await failure()).toMatchObject({ code: exitCodes.storage.code, output: expect.stringMatching(/gatehouse: .*gatehouse\.db/) });
  });

  test('another daemon has the home', async () => {
    const first = launch();
    await first.address;
    expect(await failure()).toMatchObject({ code: exitCodes.running.code, output: expect.stringContaining(`pid ${first.child.pid}`) });
  });

  test.each([
    ['gateway:\n  prot: 1\n', /config\.yaml:2:3: gateway\.prot: unknown key; did you mean "port"\?/],
    ['gateway:\n  host: ${NO_SUCH_NAME}\n', /config\.yaml:2:9: gateway\.host: NO_SUCH_NAME is not set/],
    ['providers:\n  a: {type: openai-compatible}\n', /config\.yaml:2:3: providers\.a\.baseUrl: is missing/],
    ['models:\n  default: nobody/nothing\n', /config\.yaml:2:12: models\.default: expected a model/],
    [
      `gateway:\n  tokens:\n    - {id: a, secret: ${token}}\n    - {id: a, secret: ${token}x}\n`,
      /config\.yaml:4:12: gateway\.tokens\[1\]\.id: is the same as that of gateway\.tokens\[0\]/,
    ],
    [
      `gateway:\n  tokens:\n    - {id: a, secret: change-me-change-me-change-me-change-me}\n`,
      /config\.yaml:3:23: gateway\.tokens\[0\]\.secret: is a placeholder/,
    ],
  ])('the configuration says %j', async (text, expected) => {
    configure(text);
    const { code, output } = await failure();
    expect(output).toMatch(expected);
    expect([code, output.includes(token)]).toEqual([exitCodes.config.code, false]);
  });

  test('a value from the environment is bad', async () => {
    expect(await failure({ args: ['--home', home], env: { GATEHOUSE_PORT: '99999' } })).toEqual({
      code: exitCodes.config.code,
      output: 'gatehouse: GATEHOUSE_PORT: expected an integer from 0 to 65535, found 99999\n',
    });
    expect(await failure({ env: { GATEHOUSE_TOKEN: 'short' } })).toEqual({
      code: exitCodes.config.code,
      output: expect.stringMatching(/^gatehouse: GATEHOUSE_TOKEN: must have at least 32 characters/),
    });
  });

  test('Node is too old', async () => {
    const older = 'data:text/javascript,Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } })';
    expect(await failure({ nodeArgs: ['--import', older] })).toEqual({
      code: exitCodes.node.code,
      output: expect.stringMatching(/^gatehouse: Node 26 or newer is needed/),
    });
  });
});

describe('a running daemon', { timeout: 120_000 }, () => {
  /** Accepts every request and answers none. */
  let silent: Server;
  let asked = 0;
  beforeAll(async () => {
    silent = createServer((request) => {
      asked++;
      request.resume();
    });
    await new Promise<void>((done) => void silent.listen(0, '127.0.0.1', done));
  });
  afterAll(() => {
    silent.closeAllConnections();
    silent.close();
  });

  async function busy(): Promise<Daemon> {
    const address = silent.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    configure(`providers: {slow: {type: openai-compatible, baseUrl: "http://127.0.0.1:${port}/v1", models: [{id: m}]}}\n`);
    const daemon = launch({ env: { GATEHOUSE_TOKEN: token } });
    const url = await daemon.address;
    asked = 0;
    rpc(url, 'agent.execute', { message: 'Hello' }).catch(() => {});
    await until(() => asked > 0);
    return daemon;
  }

  test.each([
    ['SIGTERM', exitCodes.terminated.code],
    ['SIGINT', exitCodes.interrupted.code],
  ] as const)('waits for turns after one %s and ends at once after the second', async (signal, code) => {
    const daemon = await busy();
    daemon.child.kill(signal);
    await until(() => daemon.output().includes('Stopping'));
    expect(daemon.child.exitCode).toBeNull();
    daemon.child.kill(signal);
    expect(await daemon.exit).toBe(code);
  });

  test('treats the signal that npm repeats as the same one', async () => {
    const daemon = launch({ env: { npm_lifecycle_event: 'start' } });
    await daemon.address;
    daemon.child.kill('SIGINT');
    daemon.child.kill('SIGINT');
    expect(await daemon.exit).toBe(exitCodes.ok.code);
  });

  test('stops after an internal error, which is logged', async () => {
    const fault = 'data:text/javascript,process.on("SIGUSR2", () => { throw new Error("planted, Bearer abcdefghijklmnopqrstuvwxyz") })';
    const daemon = launch({ nodeArgs: ['--import', fault] });
    await daemon.address;
    daemon.child.kill('SIGUSR2');
    expect(await daemon.exit).toBe(exitCodes.internal.code);
    expect(daemon.output()).toMatch(/"level":"fatal".*planted, Bearer \[REDACTED\].*Uncaught error: stopping the daemon/);
  });

  test('starts with the last configuration that could be used, says so everywhere, and leaves the broken file as it is', async () => {
    const env = { GATEHOUSE_TOKEN: token };
    configure('agents: {default: {maxSteps: 7}}\n');
    const first = launch({ env });
    await first.address;
    first.child.kill('SIGTERM');
    expect(await first.exit).toBe(exitCodes.ok.code);

    const broken = 'agents: {default: {maxStep: 8}} # by hand\n';
    configure(broken);
    const daemon = launch({ env });
    const url = await daemon.address;
    const fault = expect.stringMatching(/config\.yaml:1:20: agents\.default\.maxStep: .*did you mean "maxSteps"/);
    expect(daemon.output()).toMatch(/"level":"error".*"msg":"config.yaml cannot be used: starting with the last configuration that could"/);
    expect(daemon.output()).toMatch(/warning.*config\.yaml cannot be used.*agents\.default\.maxStep/);
    expect((await rpc(url, 'config.read', { section: 'agents' })).result).toMatchObject({ config: { default: { maxSteps: 7 } }, fault });
    expect((await rpc(url, 'gateway.status')).result).toMatchObject({ configFault: fault });
    expect((await rpc(url, 'config.set', { path: 'logging.level', value: 'debug' })).error?.message).toMatch(
      /config\.yaml cannot be used as it is now/,
    );
    expect(readFileSync(join(home, 'config.yaml'), 'utf8')).toBe(broken);

    const { result } = await rpc(url, 'config.history');
    const sha: unknown = Reflect.get(Object(Reflect.get(Object(result?.['entries']), 0)), 'sha');
    expect((await rpc(url, 'config.rollback', { sha, confirm: true })).result).toMatchObject({ rolledBack: true, restart: [] });
    expect((await rpc(url, 'config.read')).result).not.toHaveProperty('fault');
    expect(readFileSync(join(home, 'config.yaml'), 'utf8')).toBe('agents: {default: {maxSteps: 7}}\n');
    expect((await rpc(url, 'config.history', { limit: 2 })).result).toMatchObject({ entries: [{ from: 'rollback' }, { from: 'file' }] });
  });

  test('restarts in the same process with the current configuration', async () => {
    const daemon = launch({ env: { GATEHOUSE_TOKEN: token }, args: ['--home', home, '--port', '0'] });
    const before = await daemon.address;
    configure('agents: {default: {maxSteps: many}}\n');
    const refused = await rpc(before, 'gateway.restart');
    expect(refused.error?.message).toMatch(/config\.yaml:1:30: agents\.default\.maxSteps: expected an integer from 1 to 1000, found "many"/);
    expect((await rpc(before, 'system.ping')).result).toMatchObject({ pong: true });

    configure('agents: {default: {maxSteps: 7}}\n');
    expect((await rpc(before, 'gateway.restart')).result).toMatchObject({ restarting: true, systemd: false });
    await until(() => daemon.output().includes('"Restarted"'));
    const after = /"address":"([^"]+)","msg":"Restarted"/.exec(daemon.output())?.[1] ?? '';
    expect((await rpc(after, 'config.read', { section: 'agents' })).result).toMatchObject({ config: { default: { maxSteps: 7 } } });
    expect((await rpc(after, 'gateway.status')).result).toMatchObject({ pid: daemon.child.pid });
    daemon.child.kill('SIGTERM');
    expect(await daemon.exit).toBe(exitCodes.ok.code);
  });
});
