import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { freePort } from '@gatehouse/testkit/free-port';
import { pause, startDaemon } from './lib/daemon.ts';
import { ageBoots, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { type Kind, lookForAcked, startWriters } from './lib/kept-writes.ts';
import { askWith, nonceOf, proofConfig, startEchoProvider } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';
import { readSqlLog, sqlHook, type SqlLine } from './lib/sql-hook.ts';

/**
 * R13: a daemon that was killed under load is ready and answers immediately, however large its database is: neither its start
 * nor its first turns, nor the upkeep of the search index, read a whole table or check the whole file.
 */
export interface R13Report {
  readonly megabytes: number;
  /** Time from the spawn until it was ready, for each start after a kill. */
  readonly readyMs: readonly number[];
  /** The same for the first start, on an empty home. */
  readonly emptyReadyMs: number;
  /** Statements of the start and of the first writes, on threads that these wait for. */
  readonly statements: number;
  /** Those of them that check the database, or read every row of a large table. */
  readonly checks: readonly string[];
  readonly scans: readonly string[];
  readonly wrong: readonly string[];
}

export async function proveStartAfterCrash(options: {
  readonly megabytes: number;
  /** Kills under load, with a timed start after each; another kill and start, whose statements are checked, follow. */
  readonly kills: number;
  readonly broken?: string;
}): Promise<R13Report> {
  const provider = await startEchoProvider();
  const home = await makeHome();
  try {
    await writeConfig(home, proofConfig(provider.url));
    const built = { home, readyTimeoutMs: 60_000, ...(options.broken !== undefined && { broken: options.broken }) };
    const start = async (more: object = {}) => startDaemon({ ...built, port: await freePort(), ...more });
    const first = await start();
    await rpcCall(first, 'agent.execute', { message: askWith(nonceOf(['first'])), sessionKey: 'large:database' });
    await first.stop();
    const megabytes = fill(home, options.megabytes);
    const readyMs: number[] = [];
    const acked: [string, Kind][] = [];
    const wrong: string[] = [];
    let daemon = await start();
    for (let kill = 0; kill < options.kills; kill += 1) {
      const writers = startWriters(daemon, (asked) => asked < 50, { mark: `kill-${kill}` });
      for (const until = performance.now() + 20_000; writers.acked.size < 20 && performance.now() < until;) await pause(5);
      if (writers.acked.size < 20) wrong.push(`${writers.acked.size} acknowledged within 20 s after start ${kill}: ${writers.broken.join('; ')}`);
      await daemon.kill();
      await writers.done;
      acked.push(...writers.acked);
      await ageBoots(home);
      daemon = await start();
      readyMs.push(Math.round(daemon.readyMs));
    }
    await daemon.kill();
    const log = join(home, 'statements.jsonl');
    daemon = await start(sqlHook({ log }));
    const writers = startWriters(daemon, (asked) => asked < 2);
    await writers.done;
    const seen = (): SqlLine[] => readSqlLog(log).filter(({ role }) => role !== 'check');
    const isIndexed = () => seen().some(({ sql }) => sql.startsWith('update "conversation" set "indexed_seq"'));
    for (const until = performance.now() + 10_000; !isIndexed() && performance.now() < until;) await pause(50);
    if (!isIndexed()) wrong.push('the search index did not take the messages up');
    await daemon.kill();
    return {
      megabytes,
      readyMs,
      emptyReadyMs: Math.round(first.readyMs),
      statements: seen().length,
      ...judge(home, seen()),
      wrong: [...wrong, ...writers.broken, ...lookForAcked(home, new Map([...acked, ...writers.acked]))],
    };
  } finally {
    await provider.close();
    await removeHome(home);
  }
}

const bytesPerMessage = 4_000;

/** Adds messages to the one conversation until the database is so large; returns its size in MiB. */
function fill(home: string, megabytes: number): number {
  const db = new DatabaseSync(join(home, 'data', 'gatehouse.db'));
  try {
    db.exec('PRAGMA synchronous = OFF; BEGIN');
    const { id = 0, seq = 0 } = db.prepare('SELECT id, last_seq AS seq FROM conversation').get() ?? {};
    const rows = Math.ceil((megabytes * 2 ** 20) / bytesPerMessage);
    db.prepare(
      `INSERT INTO message (conversation_id, seq, turn_id, role, content, created_at_ms)
       WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
       SELECT :id, :seq + i, 'tn_fill_' || i, iif(i % 2 = 1, 'user', 'assistant'), hex(randomblob(:bytes / 2)), 1780000000000 + i FROM n`,
    ).run({ rows, id, seq, bytes: bytesPerMessage });
    db.prepare('UPDATE conversation SET last_seq = last_seq + :rows, message_count = message_count + :rows WHERE id = :id').run({ rows, id });
    // As after a long life: the index of the messages is built as they arrive.
    db.exec('UPDATE conversation SET indexed_seq = last_seq; COMMIT');
    const { size = 0 } = db.prepare('SELECT page_count * page_size / 1048576 AS size FROM pragma_page_count, pragma_page_size').get() ?? {};
    return Number(size);
  } finally {
    db.close();
  }
}

/** Rows of a table that neither a start nor a turn has a reason to read one by one. */
const largeRows = 1_000;

function judge(home: string, seen: readonly SqlLine[]): { readonly checks: string[]; readonly scans: string[] } {
  const texts = [...new Set(seen.map(({ sql }) => sql))];
  const db = new DatabaseSync(join(home, 'data', 'gatehouse.db'));
  try {
    db.prepare('ATTACH ? AS telemetry').run(join(home, 'data', 'telemetry.db'));
    const tables = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`).all();
    const large = tables
      .map(({ name }) => String(name))
      .filter((name) => Number(db.prepare(`SELECT count(*) AS n FROM (SELECT 1 FROM "${name}" LIMIT ${largeRows})`).get()?.['n']) === largeRows);
    if (!large.includes('message')) throw new Error('the table of messages is not large');
    const scan = new RegExp(`^SCAN (?:${large.join('|')})\\b`);
    const plans = (sql: string): string[] => {
      if (!/^\s*(?:select|with|update|delete|insert)/i.test(sql)) return [];
      return db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map((row) => String(row['detail']));
    };
    return {
      checks: texts.filter((sql) => /integrity_check|quick_check|foreign_key_check/i.test(sql)),
      scans: texts.filter((sql) => plans(sql).some((line) => scan.test(line))),
    };
  } finally {
    db.close();
  }
}
