import { startPostgres, type TestPostgres } from '@gatehouse/testkit/postgres';
import { startTcpProxy, type TcpProxy } from '@gatehouse/testkit/tcp-proxy';
import { pause } from './lib/daemon.ts';
import { findFaults, type LoadReport, type Query, reportOf, type Sent, startFaultLoad } from './lib/fault-load.ts';
import { queryOf, startOn } from './lib/faulty-database.ts';
import { http } from './lib/http.ts';
import { type Random, randomFrom } from './lib/random.ts';

/**
 * R36: under load, whatever happens to the connections of PostgreSQL and to the server itself, nothing acknowledged is lost and
 * nothing is done twice; meanwhile callers are refused with the time to retry, and a refused change is not kept.
 */
export const faults = ['cut', 'stalled', 'half open', 'restarted', 'read-only'] as const;
export type Fault = (typeof faults)[number];

export interface PostgresFaultsOptions {
  readonly rounds: Readonly<Partial<Record<Fault, number>>>;
  readonly seed: number;
  /** Longest time of a fault that has an end, instead of times that make calls fail. */
  readonly longestMs?: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export interface PostgresFaultsReport extends LoadReport {
  /** Longest time from the end of a fault, or from a fault that has none, until a write and a read were answered. */
  readonly slowestMs: Readonly<Partial<Record<Fault, number>>>;
}

export const recoverMs = 10_000;
/** Calls wait for 5 s, and a silent connection is noticed after 6 s: a longer fault makes them fail. */
const failingMs: Readonly<Partial<Record<Fault, number>>> = { stalled: 12_000, 'read-only': 6_500 };
/** Longest wait for a transaction of which a part is to be lost. */
const lostMs = 2_000;
/** Between two faults clients get some answers. */
const calmMs = 200;

/** One finding in a broken build is enough. */
const nothing = { lost: [], doubled: [], kept: [] };

interface Scene {
  readonly round: number;
  readonly proxy: TcpProxy;
  readonly server: TestPostgres;
  readonly query: Query;
  readonly random: Random;
  /** How long a fault with an end lasts. */
  readonly heldMs: number;
  readonly port: number;
}

/** Each returns when the fault has ended; `cut` and `half open` have no end. */
const causes: Readonly<Record<Fault, (scene: Scene) => Promise<void>>> = {
  async cut({ proxy, random, round }) {
    // Of four, one loses a commit, one the answer to it, and one the answers to a transaction before it.
    const losing = [() => proxy.holdOn('COMMIT'), () => proxy.muteOn('COMMIT'), () => proxy.muteOn('BEGIN'), undefined][round % 4];
    if (losing !== undefined) {
      await Promise.race([losing(), pause(lostMs)]);
      await pause(random.int(100));
    }
    proxy.cut();
    proxy.resume();
  },
  async stalled({ proxy, heldMs }) {
    proxy.stall();
    await pause(heldMs);
    proxy.resume();
  },
  async 'half open'({ proxy }) {
    proxy.halfOpen();
  },
  async restarted({ server, random }) {
    await server.restart(random.int(2) === 0 ? 'SIGQUIT' : 'SIGINT');
  },
  async 'read-only'({ proxy, query, random, heldMs, port }) {
    await query(`ALTER SYSTEM SET default_transaction_read_only = on`);
    await query('SELECT pg_reload_conf()');
    if (random.int(2) === 0) proxy.cut();
    await pause(heldMs);
    const { status } = await http({ port, path: '/health' });
    if (status !== 200) throw new Error(`/health answered ${status}`);
    await query('ALTER SYSTEM RESET default_transaction_read_only');
    await query('SELECT pg_reload_conf()');
  },
};

export async function provePostgresFaults({ rounds, seed, longestMs, broken, progress }: PostgresFaultsOptions): Promise<PostgresFaultsReport> {
  const random = randomFrom(seed);
  await using server = await startPostgres();
  await using proxy = await startTcpProxy(server.port);
  await using database = await startOn(server.url().replace(String(server.port), String(proxy.port)), broken);
  const { daemon } = database;
  const query = queryOf(() => server);
  const wrong: string[] = [];
  const sent: Sent[] = [];
  const slowestMs: Partial<Record<Fault, number>> = {};
  for (const fault of faults) {
    const count = rounds[fault] ?? 0;
    if (count === 0) continue;
    const load = startFaultLoad(daemon, fault.replace(' ', '-'));
    await pause(calmMs);
    const isFound = () => broken !== undefined && wrong.length + load.wrong.length + load.count('refused') + load.count('unknown') > 0;
    for (let round = 0; round < count && !isFound(); round += 1) {
      const mostMs = longestMs ?? failingMs[fault] ?? 0;
      // The first one is long enough for refusals.
      const heldMs = round === 0 ? mostMs : random.int(mostMs);
      await causes[fault]({ round, proxy, server, query, random, heldMs, port: daemon.port });
      const tookMs = await database.recovered(recoverMs);
      slowestMs[fault] = Math.max(slowestMs[fault] ?? 0, Math.round(tookMs ?? recoverMs));
      if (tookMs === undefined) {
        wrong.push(`${fault}, round ${round}: no answers ${recoverMs} ms later`);
        proxy.cut();
      }
      await pause(calmMs);
    }
    await load.stop();
    sent.push(...load.sent);
    wrong.push(...load.wrong);
    const refused = load.count('refused') + load.count('unknown');
    // A connection is opened again before a caller has waited too long.
    if (fault === 'cut' && refused > 0) wrong.push(`cut: ${refused} calls were refused`);
    if (longestMs === undefined && failingMs[fault] !== undefined && refused === 0) wrong.push(`${fault}: nothing was refused`);
    progress?.(
      `R36 ${fault} ${count} times: ${load.count('acknowledged')} acknowledged, ${load.count('refused')} refused, ${load.count('unknown')} unknown, answers after ${slowestMs[fault]} ms at most, ${wrong.length} wrong`,
    );
  }
  return { slowestMs, ...reportOf(sent, wrong, broken !== undefined && wrong.length > 0 ? nothing : await findFaults(query, sent)) };
}
