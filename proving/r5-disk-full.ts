import { spawnSync } from 'node:child_process';
import { appendFile, chmod, mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { http } from './lib/http.ts';
import { lookForAcked, startWriters } from './lib/kept-writes.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * R5: on a full disk the daemon keeps reading and says that it cannot store; nothing that it acknowledged is lost, and it accepts
 * writes again on its own when space is free.
 */
export interface R5Report {
  readonly acked: number;
  /** Refused while the disk was full. */
  readonly refused: number;
  /** Checks of `/health` while it was full, and those that reported a read-only storage. */
  readonly looks: number;
  readonly readOnly: number;
  /** Time from freeing space to the next acknowledgement. */
  readonly recoveredMs: number | undefined;
  readonly wrong: readonly string[];
}

const sizeMb = 16;

/** Why no small disk can be created here; undefined when one can. */
export async function smallDiskMissing(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'tmpfs exists on Linux only';
  const folder = await makeHome();
  const problem = mount(folder);
  if (problem === undefined) spawnSync('umount', [folder]);
  await removeHome(folder);
  return problem;
}

function mount(folder: string, megabytes = sizeMb): string | undefined {
  const { status, stderr, error } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { encoding: 'utf8' });
  return status === 0 ? undefined : `no tmpfs can be mounted here: ${(stderr ?? String(error)).trim().slice(0, 200)}`;
}

export async function proveDiskFull(options: { readonly forMs: number; readonly broken?: string }): Promise<R5Report> {
  const provider = await startEchoProvider();
  const home = await makeHome();
  const problem = mount(home);
  if (problem !== undefined) throw new Error(problem);
  let daemon: Daemon | undefined;
  try {
    await chmod(home, 0o700);
    // The guard that keeps a reserve free is off: the disk itself refuses.
    await writeConfig(home, { ...proofConfig(provider.url), storage: { minFreeBytes: 0 } });
    daemon = await startDaemon({
      home,
      port: await freePort(),
      readyTimeoutMs: 60_000,
      ...(options.broken !== undefined && { broken: options.broken }),
    });
    return await runFull(daemon, options.forMs);
  } finally {
    await daemon?.kill();
    await provider.close();
    spawnSync('umount', [home]);
    await removeHome(home);
  }
}

async function runFull(daemon: Daemon, forMs: number): Promise<R5Report> {
  const wrong: string[] = [];
  let stopped = false;
  const writers = startWriters(daemon, () => !stopped, { paceMs: 10 });
  // It greets when its start is over; a start on a full disk is refused, which is another matter.
  for (const until = performance.now() + 20_000; performance.now() < until && (daemon.stdout() === '' || writers.acked.size < 20);) await pause(20);
  const filler = join(daemon.home, 'filler');
  const refusedBefore = writers.refused;
  let [looks, readOnly] = [0, 0];
  for (const until = performance.now() + forMs; performance.now() < until; await pause(100)) {
    await fillUp(filler);
    const health = await http({ port: daemon.port, path: '/health', timeoutMs: 5_000 }).catch((error: unknown) => String(error));
    looks += 1;
    if (typeof health === 'string' || health.status !== 200) wrong.push(`/health: ${typeof health === 'string' ? health : health.status}`);
    else if (health.text.includes('read-only')) readOnly += 1;
    await rpcCall(daemon, 'agents.list', {}).catch((error: unknown) => void wrong.push(`reading: ${String(error)}`));
  }
  const refused = writers.refused - refusedBefore;
  await rm(filler);
  const [freedAt, acked] = [performance.now(), writers.acked.size];
  let recoveredMs: number | undefined;
  for (const until = freedAt + 20_000; recoveredMs === undefined && performance.now() < until; await pause(10))
    if (writers.acked.size > acked) recoveredMs = Math.round(performance.now() - freedAt);
  stopped = true;
  await writers.done;
  if (recoveredMs === undefined) wrong.push('it takes no writes 20 s after there is room again');
  if (daemon.child.exitCode !== null || daemon.child.signalCode !== null) wrong.push(`the daemon is gone\n${daemon.stderr().slice(-2_000)}`);
  await daemon.kill();
  return {
    acked: writers.acked.size,
    refused,
    looks,
    readOnly,
    recoveredMs,
    wrong: [...wrong, ...writers.broken.slice(0, 5), ...lookForAcked(daemon.home, writers.acked)],
  };
}

export interface TelemetryReport {
  /** Turns that were answered while the disk of events and traces was full. */
  readonly turns: number;
  /** Lines of the log about the disk. */
  readonly lines: readonly string[];
  readonly wrong: readonly string[];
}

/**
 * The disk of the file with events and traces alone is full: turns continue and are kept, health says what is not stored, and once there is space the
 * traces of those turns are stored, without a restart.
 */
export async function proveTelemetryFull(options: { readonly turns: number; readonly broken?: string }): Promise<TelemetryReport> {
  const provider = await startEchoProvider();
  const home = await makeHome();
  const disk = join(home, 'telemetry');
  await mkdir(disk, { mode: 0o700 });
  await mkdir(join(home, 'data'), { mode: 0o700 });
  const problem = mount(disk, 4);
  if (problem !== undefined) throw new Error(problem);
  let daemon: Daemon | undefined;
  try {
    await symlink(join(disk, 'telemetry.db'), join(home, 'data/telemetry.db'));
    await writeConfig(home, proofConfig(provider.url));
    daemon = await startDaemon({ home, port: await freePort(), ...(options.broken !== undefined && { broken: options.broken }) });
    const { port, token } = daemon;
    const wrong: string[] = [];
    const ask = async (message: string) => Answered.parse(await rpcCall(daemon as Daemon, 'agent.execute', { message, sessionKey: 'full:disk' }));
    const steps = (traceId: string) =>
      rpcCall({ port, token }, 'obs.trace.get', { ref: traceId }).then(
        (found) => Traced.parse(found).records.length,
        () => 0,
      );
    const healthSays = async () => Healthy.parse(JSON.parse((await http({ port, path: '/health' })).text)).checks['telemetry']?.detail ?? '';
    const becomes = async (what: string, holds: () => Promise<boolean>) => {
      for (const until = performance.now() + 15_000; !(await holds());) {
        if (performance.now() > until) return void wrong.push(what);
        await pause(50);
      }
    };
    const before = await ask('Before');
    await becomes('no trace of the first turn', async () => (await steps(before.traceId)) === 1);
    const filler = join(disk, 'filler');
    await fillUp(filler);
    const asked = [];
    // More than what the write-ahead log has left of its file.
    for (let turn = 0; turn < options.turns; turn += 1) asked.push(await ask(`During ${turn} ${'x'.repeat(2_000)}`));
    await becomes('health does not say that traces are not stored', async () => /not stored/.test(await healthSays()));
    for (let turn = 0; turn < 3; turn += 1) asked.push(await ask(`Later ${turn}`));
    if (!/not stored/.test(await healthSays())) wrong.push('health forgets that traces are not stored when a turn is');
    if ((await steps(before.traceId)) !== 1) wrong.push('an earlier trace cannot be read');
    const kept = z.object({ total: z.number() }).parse(await rpcCall(daemon, 'session.history', { sessionKey: 'full:disk' })).total;
    if (kept !== 2 * (asked.length + 1)) wrong.push(`${kept} of ${2 * (asked.length + 1)} messages are kept`);
    await rm(filler);
    await becomes('health still says that traces are not stored', async () => (await healthSays()) === '');
    for (const { traceId } of asked) await becomes(`no trace of the turn ${traceId}`, async () => (await steps(traceId)) === 1);
    await daemon.stop();
    const lines = daemon.stdout().split('\n').concat(daemon.stderr().split('\n'));
    return { turns: asked.length, lines: lines.filter((line) => /read-only|accepts writes|not stored|stored again/.test(line)), wrong };
  } finally {
    await daemon?.kill();
    await provider.close();
    spawnSync('umount', [disk]);
    await removeHome(home);
  }
}

const Answered = z.looseObject({ traceId: z.string() });
const Traced = z.looseObject({ records: z.array(z.unknown()) });
const Healthy = z.looseObject({ checks: z.record(z.string(), z.looseObject({ detail: z.string().optional() })) });

/** Uses up all space. */
async function fillUp(filler: string): Promise<void> {
  for (const size of [2 ** 20, 2 ** 12]) {
    const piece = Buffer.alloc(size);
    for (let full = false; !full;)
      full = await appendFile(filler, piece).then(
        () => false,
        () => true,
      );
  }
}
