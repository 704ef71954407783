import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';
import { unprivileged } from './unprivileged.ts';

/** The folder in which Debian and its relatives keep the programs of each version, where `pg_ctlcluster` finds them too. */
const versions = '/usr/lib/postgresql';
const startMs = 30_000;

/** A PostgreSQL server on 127.0.0.1 with an empty data folder, which is deleted with it. */
export interface TestPostgres extends AsyncDisposable {
  readonly port: number;
  /** Names a superuser. */
  readonly url: (database?: string) => string;
  readonly pid: number;
  /** Ends the server at once, as a crash does, and starts it again on the same port. */
  restart(signal?: 'SIGQUIT' | 'SIGINT' | 'SIGKILL'): Promise<void>;
  /** Ends the server by SIGKILL; `restart` starts it again. */
  kill(): Promise<void>;
  /** Makes a standby the primary; resolves when it accepts writes. */
  promote(): Promise<void>;
}

export interface PostgresOptions {
  /** Lines of `postgresql.conf`. Without `fsync = on` a kill of the machine loses data; a kill of the server does not. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly port?: number;
  /** The folder in which the data folder is made, such as a small disk; the system's temporary folder when absent. */
  readonly parent?: string;
  /** Copies this server and follows it. */
  readonly standbyOf?: TestPostgres;
}

/** Returns the folder of the newest installed server programs; undefined when PostgreSQL is not installed. */
export function findPostgres(): string | undefined {
  if (!existsSync(versions)) return undefined;
  const newest = readdirSync(versions)
    .filter((name) => existsSync(join(versions, name, 'bin', 'postgres')))
    .toSorted((a, b) => Number(b) - Number(a))[0];
  return newest === undefined ? undefined : join(versions, newest, 'bin');
}

/** Starts a server; it refuses to run as root, so root starts it as the user of the package. */
export async function startPostgres({ settings = {}, port: wanted, parent = tmpdir(), standbyOf }: PostgresOptions = {}): Promise<TestPostgres> {
  const programs = findPostgres();
  if (programs === undefined) throw new Error('PostgreSQL is not installed (Debian package postgresql)');
  const identity = unprivileged('postgres');
  const folder = mkdtempSync(join(parent, 'gatehouse-pg-'));
  if (identity.uid !== undefined && identity.gid !== undefined) chownSync(folder, identity.uid, identity.gid);
  const data = join(folder, 'data');
  const options = { ...identity, cwd: folder, env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C.UTF-8' } };
  const run = (program: string, args: readonly string[]) => promisify(execFile)(join(programs, program), args, options);
  if (standbyOf === undefined) await run('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync']);
  else await run('pg_basebackup', ['-D', data, '-d', standbyOf.url(), '-R', '-X', 'stream', '-c', 'fast', '--no-sync']);
  const port = wanted ?? (await freePort());
  const all = { fsync: 'off', full_page_writes: 'off', shared_buffers: '32MB', max_connections: '200', max_prepared_transactions: '0', ...settings };
  const parameters = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', '', ...parameters], {
      ...options,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-10_000)));
    const end = Date.now() + startMs;
    while (!/is ready to accept (read-only )?connections/.test(said)) {
      if (child.exitCode !== null || Date.now() > end) {
        child.kill('SIGQUIT');
        throw new Error(`PostgreSQL did not start: ${said}`);
      }
      await sleep(20);
    }
    return child;
  };
  let child = await start();
  const stop = async (signal: NodeJS.Signals) => {
    const exited = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await exited;
  };
  return {
    port,
    url: (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`,
    get pid() {
      return child.pid ?? 0;
    },
    async restart(signal = 'SIGQUIT') {
      await stop(signal);
      child = await start();
    },
    kill: () => stop('SIGKILL'),
    async promote() {
      await run('pg_ctl', ['promote', '-D', data, '-w']);
    },
    async [Symbol.asyncDispose]() {
      await stop('SIGQUIT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
