// Commits of turns without stored messages: SQLite and PostgreSQL through their storage threads, on the same disk, both synced.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isMainThread, workerData } from 'node:worker_threads';
import { findPostgres, startPostgres } from '@gatehouse/testkit/postgres';
import { turnMigrations } from '../../packages/server/src/features/conversations/turns/migrations.ts';
import { nodeMigrations } from '../../packages/server/src/features/operations/nodes/migrations.ts';
import { systemClock } from '../../packages/server/src/kernel/clock.ts';
import type { Db } from '../../packages/server/src/kernel/db/db.ts';
import { operation, raw } from '../../packages/server/src/kernel/db/operation.ts';
import { openPostgresDb } from '../../packages/server/src/kernel/db/postgres/open-postgres.ts';
import { servePostgres } from '../../packages/server/src/kernel/db/postgres/worker.ts';
import { openDb } from '../../packages/server/src/kernel/db/sqlite/open-db.ts';
import { serveStorage } from '../../packages/server/src/kernel/db/sqlite/worker.ts';
import { silentLog } from '../../packages/server/src/kernel/log.ts';
import { commitTurn } from '../../packages/server/src/transactions/commit-turn.ts';
import { median } from '../lib/stats.ts';

/** Turns are stored for a daemon that is alone. */
const addNode = operation('bench.addNode', async (tx, _input: object): Promise<void> => {
  await tx.build((db, sql) => raw(db, sql`INSERT INTO node VALUES ('boot_1', 'home', NULL, '1', 'active', 'live', 0, 0, 0, '')`));
});
const operations = [commitTurn, addNode];
const migrations = [...turnMigrations, ...nodeMigrations];
const callers = 64;

function turnOf(number: number): Parameters<typeof commitTurn.run>[1] {
  const common = { provider: 'mock', model: 'mock/mock-fast', operation: 'chat', outcome: 'ok', inputTokens: 120, outputTokens: 100 } as const;
  const call = {
    ...common,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    estimated: false,
    costNano: 210_000,
    savedNano: 0,
    latencyMs: 12,
    responseId: null,
    atMs: number,
  };
  return {
    turn: {
      id: `turn_${number}`,
      conversationRef: `agent:default:v1:${number}`,
      sessionKey: `agent:default:v1:${number}`,
      agentId: 'default',
      principalId: 'token:bench',
      origin: 'v1',
      state: 'completed',
      finishReason: 'stop',
      failureKind: null,
      model: 'mock/mock-fast',
      steps: 1,
      inputTokens: 240,
      outputTokens: 200,
      costNano: 420_000,
      reservedNano: null,
      traceId: '0af7651916cd43dd8448eb211c80319c',
      startedAtMs: number,
      endedAtMs: number + 12,
      bootId: 'boot_1',
    },
    calls: [call, call],
    conversation: null,
  };
}

interface Round {
  /** Microseconds for each commit: processor time of this process with its threads, and time. */
  readonly cpu: number;
  readonly wall: number;
}

let next = 0;
async function commitTurns(db: Db, count: number): Promise<Round> {
  const last = next + count;
  const cpuBefore = process.cpuUsage();
  const before = performance.now();
  const caller = async () => {
    while (next < last) await db.write(commitTurn, turnOf(next++));
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const used = process.cpuUsage(cpuBefore);
  return { cpu: (used.user + used.system) / count, wall: ((performance.now() - before) * 1000) / count };
}

export interface PostgresRound {
  readonly sqlite: Round;
  readonly postgres: Round;
}

/** Interleaved rounds on both engines. */
export async function measurePostgres(rounds: number, perRound: number): Promise<PostgresRound[]> {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  await using server = await startPostgres({ settings: { fsync: 'on', full_page_writes: 'on', shared_buffers: '128MB' } });
  const common = { workerUrl: new URL(import.meta.url), clock: systemClock, log: silentLog };
  try {
    await using sqlite = await openDb({ ...common, dataDir: dir });
    await using postgres = await openPostgresDb({ ...common, address: { url: server.url() } });
    for (const db of [sqlite, postgres]) await db.write(addNode, {});
    const results: PostgresRound[] = [];
    // The first two warm up.
    for (let round = -2; round < rounds; round++) {
      const result = { sqlite: await commitTurns(sqlite, perRound), postgres: await commitTurns(postgres, perRound) };
      if (round >= 0) results.push(result);
    }
    return results;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

if (!isMainThread) {
  if (String((workerData as { readonly role: string }).role).startsWith('postgres')) await servePostgres({ operations, migrations });
  else await serveStorage({ operations, migrations });
} else if (import.meta.main) {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '7' }, ops: { type: 'string', default: '6000' } } });
  if (findPostgres() === undefined) {
    console.log('skipped: PostgreSQL is not installed');
    process.exit(0);
  }
  const rounds = await measurePostgres(Number(values.rounds), Number(values.ops));
  const figure = (pick: (round: PostgresRound) => number) => median(rounds.map(pick)).toFixed(2);
  console.log(`CPU µs: SQLite ${figure((r) => r.sqlite.cpu)}, PostgreSQL ${figure((r) => r.postgres.cpu)}`);
  console.log(`time µs: SQLite ${figure((r) => r.sqlite.wall)}, PostgreSQL ${figure((r) => r.postgres.wall)}`);
  console.log(
    JSON.stringify({
      rates: rounds.map((round) => round.sqlite.wall / round.postgres.wall),
      cpu: rounds.map((round) => round.postgres.cpu / round.sqlite.cpu),
    }),
  );
}
