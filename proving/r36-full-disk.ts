import { spawn, spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { appendFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { startPostgres } from '@gatehouse/testkit/postgres';
import * as z from 'zod';
import { pause, root } from './lib/daemon.ts';
import { callRpc, findFaults, kinds, startFaultLoad } from './lib/fault-load.ts';
import { queryOf, startOn } from './lib/faulty-database.ts';
import { makeHome, removeHome } from './lib/home.ts';
import { http } from './lib/http.ts';

/**
 * On a full disk of PostgreSQL the daemon keeps reading and says which disk is full; nothing acknowledged is lost, and it accepts
 * writes again when space is free, also when the server had to be started again.
 */
export interface FullDatabaseDiskReport {
  readonly acknowledged: number;
  readonly refused: number;
  /** Checks of `/health` while the disk was full. */
  readonly checks: number;
  readonly recoveredMs: number | undefined;
  readonly wrong: readonly string[];
}

const detail = 'the disk of the database server is full or failing';
const sizeMb = 96;
const recoverMs = 10_000;
const Checks = z.looseObject({ status: z.string(), checks: z.looseObject({ storage: z.looseObject({ detail: z.string().optional() }) }) });
const Doctor = z.object({ checks: z.array(z.looseObject({ name: z.string(), status: z.string(), detail: z.string() })) });

export async function proveFullDatabaseDisk(options: {
  readonly forMs: number;
  /** Without webhooks and jobs: the leases of their work end after up to a minute. */
  readonly onlyBound?: boolean;
  /** Also fills the log of the server, which ends it. */
  readonly endsServer?: boolean;
  readonly broken?: string;
}): Promise<FullDatabaseDiskReport> {
  await using opened = new AsyncDisposableStack();
  const disk = await makeHome();
  opened.defer(() => removeHome(disk));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'tmpfs', disk]);
  if (mounted.status !== 0) throw new Error(`mount: ${String(mounted.stderr)}`);
  opened.defer(() => void spawnSync('umount', [disk]));
  chmodSync(disk, 0o755);
  const server = opened.use(await startPostgres({ parent: disk }));
  const query = queryOf(() => server);
  const database = opened.use(await startOn(server.url(), options.broken));
  const { daemon } = database;
  const filler = join(disk, 'filler');
  const wrong: string[] = [];
  let checks = 0;
  let recoveredMs: number | undefined;
  const load = startFaultLoad(daemon, 'full-disk', options.onlyBound === true ? ['v1', 'turn', 'token'] : kinds);

  async function checkHealth(): Promise<void> {
    const health = await http({ port: daemon.port, path: '/health', timeoutMs: 5_000 });
    const found = Checks.parse(JSON.parse(health.text));
    checks += 1;
    if (health.status !== 200 || found.status !== 'degraded' || found.checks.storage.detail !== detail) wrong.push(`/health: ${health.text}`);
  }
  async function free(): Promise<void> {
    await rm(filler);
    if (options.endsServer === true) await server.restart();
    const tookMs = await database.recovered(recoverMs);
    if (tookMs === undefined) wrong.push(`no answers ${recoverMs} ms after space was free`);
    recoveredMs = tookMs === undefined ? undefined : Math.round(tookMs);
  }

  await pause(1_000);
  await fillUp(filler);
  for (const until = performance.now() + 20_000; load.count('refused') === 0 && performance.now() < until;) await pause(20);
  if (load.count('refused') === 0) wrong.push('nothing was refused');
  for (const until = performance.now() + options.forMs; performance.now() < until && wrong.length < 5; await pause(200)) {
    await checkHealth();
    const { text } = await callRpc(daemon, 'session.list', {});
    if (!text.includes('"result":')) wrong.push(`reading: ${text}`);
  }
  // This process reads the log of the server meanwhile: it stops when nobody does.
  const stdout = await textOf(spawn(process.execPath, ['dist/main.js', '--home', daemon.home, '--doctor'], { cwd: root }).stdout);
  const said = Doctor.parse(JSON.parse(stdout)).checks.find(({ name }) => name === 'database');
  if (said?.status !== 'fail' || !said.detail.includes('disk of the database server is full')) wrong.push(`the doctor: ${JSON.stringify(said)}`);
  if (options.endsServer === true) {
    while (
      await query(`SELECT pg_logical_emit_message(true, 'filler', repeat('x', 100000))`).then(
        () => true,
        () => false,
      )
    );
    await pause(500);
    await checkHealth();
  }
  await free();
  await load.stop();
  const { lost, doubled, kept } = options.broken === undefined ? await findFaults(query, load.sent) : { lost: [], doubled: [], kept: [] };
  if (daemon.child.exitCode !== null) wrong.push(`the daemon ended with ${daemon.child.exitCode}`);
  return {
    acknowledged: load.count('acknowledged'),
    refused: load.count('refused'),
    checks,
    recoveredMs,
    wrong: [...wrong, ...load.wrong, ...lost, ...doubled, ...kept.map((line) => `kept: ${line}`)],
  };
}

async function fillUp(filler: string): Promise<void> {
  for (const size of [2 ** 20, 2 ** 12])
    while (
      await appendFile(filler, Buffer.alloc(size)).then(
        () => true,
        () => false,
      )
    );
}
