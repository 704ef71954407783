import { spawnSync } from 'node:child_process';
import { mkdir, open, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, root, spawnDaemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/** Proves what happens to a daemon with too few descriptors, or without space on its disk. */
export interface ScarcityReport {
  readonly wrong: readonly string[];
}

const limit = 256;
const turns = 5;
const refusedMs = 2_000;
const exitDisk = 73;
const exitHome = 66;
const Health = z.looseObject({ status: z.string() });

/**
 * More idle sockets than a limit of 256 descriptors allows; turns are still answered on open connections, and new connections
 * beyond the limit are refused immediately.
 */
export async function proveFewDescriptors(options: { readonly sockets: number; readonly broken?: string }): Promise<ScarcityReport> {
  const home = await makeHome();
  const provider = await startEchoProvider();
  const port = await freePort();
  await writeConfig(home, proofConfig(provider.url));
  const wrong: string[] = [];
  const idle: Socket[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: turns });
  let daemon: Daemon | undefined;
  try {
    const under = ['prlimit', `--nofile=${limit}:${limit}`];
    daemon = await startDaemon({ home, port, under, ...(options.broken !== undefined && { broken: options.broken }) });
    // Existing connections without a turn so far.
    await Promise.all(Array.from({ length: turns }, () => http({ port, path: '/health', agent })));
    for (let n = 0; n < options.sockets; n += 1) idle.push(connect(port, '127.0.0.1').on('error', () => {}));
    await pause(1_000);
    const { token } = daemon;
    for (const status of await Promise.all(Array.from({ length: turns }, () => askOnce(port, token, agent))))
      if (status !== 200) wrong.push(`a turn was answered ${status}`);
    const late = await Promise.all(Array.from({ length: turns }, () => comeLate(port)));
    for (const end of late)
      if (end !== 'closed' && !/^HTTP\/1\.1 503 .*\r\nretry-after:/is.test(end)) wrong.push(`a connection beyond the limit: ${end}`);
    if (daemon.child.exitCode !== null) wrong.push(`the daemon ended with ${daemon.child.exitCode}`);
    return { wrong };
  } finally {
    for (const socket of idle) socket.destroy();
    agent.destroy();
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

/** Returns the answer to a request on a new connection: its first bytes, or `closed`. */
function comeLate(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n'));
    const end = (how: string) => {
      resolve(how);
      socket.destroy();
    };
    socket.setTimeout(refusedMs, () => end(`nothing within ${refusedMs} ms`));
    socket.once('data', (bytes) => end(bytes.toString('latin1')));
    socket.once('close', () => end('closed')).on('error', () => {});
  });
}

async function askOnce(port: number, token: string, agent: Agent): Promise<number | string> {
  const body = { model: 'local/test-model', messages: [{ role: 'user', content: 'Please note nonce-1-end' }] };
  return http({ port, path: '/v1/chat/completions', headers: bearer(token), body, agent, timeoutMs: 5_000 }).then(
    ({ status }) => status,
    (error: unknown) => String(error),
  );
}

/** Undefined where this process may mount a file system. */
export function mountMissing(): string | undefined {
  return process.platform === 'linux' && process.getuid?.() === 0 ? undefined : 'mounting a small disk needs root on Linux';
}

/** A disk that is full while the daemon runs, and before it starts. */
export async function proveFullDisk(options: { readonly broken?: string } = {}): Promise<ScarcityReport> {
  const dir = await makeHome();
  const home = join(dir, 'disk');
  await mkdir(home);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=24m,mode=0700', 'tmpfs', home]);
  if (mounted.status !== 0) throw new Error(`mount: ${String(mounted.stderr)}`);
  const wrong: string[] = [];
  const port = await freePort();
  const how = { home, port, workingDir: dir, ...(options.broken !== undefined && { broken: options.broken }) };
  let daemon: Daemon | undefined;
  try {
    // Without a reserve the disk itself refuses.
    await writeConfig(home, { ...proofConfig('http://127.0.0.1:9/v1'), storage: { minFreeBytes: 0 } });
    daemon = await startDaemon(how);
    const target = { port, token: daemon.token };
    await fill(home);
    const said = await writeUntilRefused(target);
    if (!/full/.test(said)) wrong.push(`a write said: ${said}`);
    await rpcCall(target, 'tokens.list', {}).catch((error: unknown) => wrong.push(`a read failed: ${String(error)}`));
    if ((await healthOf(port)) !== 'degraded') wrong.push('/health is not degraded');
    await rm(join(home, 'filler'));
    // No client writes now.
    const untilMs = performance.now() + 15_000;
    while ((await healthOf(port)) !== 'ok' && performance.now() < untilMs) await pause(200);
    if ((await healthOf(port)) !== 'ok') wrong.push('/health stays degraded although there is room again');
    await rpcCall(target, 'tokens.create', { scopes: ['api'] }).catch((error: unknown) => wrong.push(`no write afterwards: ${String(error)}`));
    await daemon.stop();
    await fill(home);
    const late = spawnDaemon(how);
    const { code } = await late.exited;
    if (code !== exitDisk || !/disk of .* is full: free some space/.test(late.stderr()))
      wrong.push(`a start ended with ${code}: ${late.stderr().slice(-300)}`);
    return { wrong };
  } finally {
    await daemon?.kill();
    spawnSync('umount', [home]);
    await removeHome(dir);
  }
}

/** A disk on which no more files can be created although bytes are free, and one that is mounted read-only. */
export async function proveNoInodesAndReadOnly(): Promise<ScarcityReport> {
  const dir = await makeHome();
  const disk = join(dir, 'disk');
  const home = join(disk, 'home');
  await mkdir(disk);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,nr_inodes=120,mode=0700', 'tmpfs', disk]);
  if (mounted.status !== 0) throw new Error(`mount: ${String(mounted.stderr)}`);
  const wrong: string[] = [];
  const start = async (code: number, said: RegExp): Promise<void> => {
    const late = spawnDaemon({ home, port: await freePort(), workingDir: dir });
    const ended = await late.exited;
    if (ended.code !== code || !said.test(late.stderr())) wrong.push(`a start ended with ${ended.code}: ${late.stderr().slice(-300)}`);
  };
  const examined = (name: string, detail: RegExp): void => {
    const { stdout } = spawnSync(process.execPath, ['dist/main.js', '--home', home, '--doctor'], { cwd: root, encoding: 'utf8' });
    const { checks } = z
      .object({ checks: z.array(z.looseObject({ name: z.string(), status: z.string(), detail: z.string() })) })
      .parse(JSON.parse(stdout));
    const found = checks.find((check) => check.name === name);
    if (found?.status !== 'fail' || !detail.test(found.detail)) wrong.push(`the check of ${name}: ${JSON.stringify(found)}`);
  };
  try {
    await mkdir(home, { mode: 0o700 });
    await writeConfig(home, proofConfig('http://127.0.0.1:9/v1'));
    await (await startDaemon({ home, port: await freePort(), workingDir: dir })).stop();
    await mkdir(join(disk, 'filler'));
    let files = 0;
    while (files < 200 && (await made(join(disk, 'filler', String(files))))) files += 1;
    await start(exitDisk, /no inodes left/);
    examined('disk', /no inodes left/);
    await rm(join(disk, 'filler'), { recursive: true });
    spawnSync('mount', ['-o', 'remount,ro', disk]);
    await start(exitHome, /mounted read-only; mount it for writing/);
    examined('home', /mounted read-only/);
    return { wrong };
  } finally {
    spawnSync('umount', [disk]);
    await removeHome(dir);
  }
}

async function made(file: string): Promise<boolean> {
  try {
    await using _empty = await open(file, 'wx');
    return true;
  } catch {
    return false;
  }
}

/** Uses up all space of the disk of a folder, by its file `filler`. */
export async function fill(dir: string): Promise<void> {
  await using file = await open(join(dir, 'filler'), 'a');
  for (const bytes of [65_536, 4096, 1]) {
    try {
      for (;;) await file.write(Buffer.alloc(bytes));
    } catch {
      // No space for a block of this size.
    }
  }
}

async function writeUntilRefused(target: { readonly port: number; readonly token: string }): Promise<string> {
  for (let n = 0; n < 500; n += 1) {
    try {
      await rpcCall(target, 'tokens.create', { scopes: ['api'] });
    } catch (error) {
      return String(error);
    }
  }
  return 'nothing: 500 writes were taken';
}

async function healthOf(port: number): Promise<string> {
  return Health.parse(JSON.parse((await http({ port, path: '/health' })).text)).status;
}
