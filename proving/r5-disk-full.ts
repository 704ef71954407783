import { spawnSync } from 'node:child_process';
import { appendFile, chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
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

function mount(folder: string): string | undefined {
  const { status, stderr, error } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'tmpfs', folder], { encoding: 'utf8' });
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
