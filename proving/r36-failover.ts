import { startPostgres, type TestPostgres } from '@gatehouse/testkit/postgres';
import { freePort } from '@gatehouse/testkit/free-port';
import { pause } from './lib/daemon.ts';
import { findFaults, type LoadReport, type Query, reportOf, type Sent, startFaultLoad } from './lib/fault-load.ts';
import { queryOf, startOn } from './lib/faulty-database.ts';
import { takeOverMs } from './lib/nodes.ts';
import { randomFrom } from './lib/random.ts';

export interface FailoverReport extends LoadReport {
  /** Longest time from the kill of the primary until a write and a read were answered. */
  readonly slowestMs: number;
}

/** Until the standby is promoted, as a manager of PostgreSQL notices the loss of the primary. */
const noticeMs = 3_000;

/**
 * The primary of two servers with synchronous replication is killed under load and its standby is promoted. The daemon, whose URL lists
 * both, continues with nothing acknowledged lost; the former primary, which comes back and accepts writes, is not used.
 */
export async function proveFailover(options: {
  readonly rounds: number;
  readonly seed: number;
  readonly progress?: (line: string) => void;
}): Promise<FailoverReport> {
  const random = randomFrom(options.seed);
  await using opened = new AsyncDisposableStack();
  const ports = [await freePort(), await freePort()];
  const follow = async (primary: TestPostgres, port: number | undefined): Promise<TestPostgres> => {
    const standby = opened.use(await startPostgres({ standbyOf: primary, ...(port !== undefined && { port }) }));
    await makeSynchronous(queryOf(() => primary));
    return standby;
  };
  let primary = opened.use(await startPostgres({ ...(ports[0] !== undefined && { port: ports[0] }) }));
  let standby = await follow(primary, ports[1]);
  const query = queryOf(() => primary);
  const database = opened.use(await startOn(`postgres://postgres@${ports.map((port) => `127.0.0.1:${port}`).join()}/postgres`));
  const wrong: string[] = [];
  const sent: Sent[] = [];
  let slowestMs = 0;
  for (let round = 0; round < options.rounds; round += 1) {
    const load = startFaultLoad(database.daemon, `failover-${round}`);
    await pause(500 + random.int(1_000));
    const killedAt = performance.now();
    await primary.kill();
    await pause(random.int(noticeMs));
    await standby.promote();
    await database.recovered(2 * takeOverMs);
    const tookMs = Math.round(performance.now() - killedAt);
    slowestMs = Math.max(slowestMs, tookMs);
    if (tookMs > takeOverMs) wrong.push(`round ${round}: answers after ${tookMs} ms`);
    await pause(500);
    const former = primary;
    primary = standby;
    await former.restart();
    // Whatever connects now finds two servers that accept writes.
    await query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'gatehouse %'`);
    if ((await database.recovered(takeOverMs)) === undefined) wrong.push(`round ${round}: no answers next to the former primary`);
    await load.stop();
    sent.push(...load.sent);
    wrong.push(...load.wrong);
    const { port } = former;
    await former[Symbol.asyncDispose]();
    if (round < options.rounds - 1) standby = await follow(primary, port);
    options.progress?.(
      `R36 failover ${round + 1}/${options.rounds}: ${load.count('acknowledged')} acknowledged, ${load.count('refused')} refused, ${load.count('unknown')} unknown, answers after ${tookMs} ms, ${wrong.length} wrong`,
    );
  }
  return { slowestMs, ...reportOf(sent, wrong, await findFaults(query, sent)) };
}

/** Commits wait for the standby from now on; resolves when it has caught up. */
async function makeSynchronous(query: Query): Promise<void> {
  await query(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
  await query('SELECT pg_reload_conf()');
  while ((await query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)).length === 0) await pause(50);
}
