import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { onPostgres } from '@gatehouse/testkit';
import { openInlineDb } from '../../packages/server/src/kernel/db/sqlite/inline.ts';
import { migrations, operations } from '../../packages/server/src/transactions/registry.ts';
import type { Look } from './hammer/driver.ts';
import { lookAt } from './hammer/engine.ts';
import { makeHome } from './home.ts';
import { type Random, randomFrom } from './random.ts';
import { claimOf, endAll, makePiece, staleKinds, type Write } from './stale-work.ts';

// Two owners of the same work on one database: the first pauses past its lease, the second takes over, the first resumes and
// writes everything that it could. A separate process, so that a fault can be built into it.
const [pauses = 0, seed = 0] = process.argv.slice(2).map(Number);
const startMs = Date.UTC(2026, 8, 21, 12);
/** Rows of this many pauses are compared at once. */
const each = 20;

const random = randomFrom(seed);
const wrong: string[] = [];
const tried: Record<string, number> = {};
let writes = 0;
for (let from = 0; from < pauses; from += each) await few(from, Math.min(pauses, from + each));
process.send?.({ pauses, writes, tried, wrong });
process.disconnect?.();

async function few(from: number, to: number): Promise<void> {
  const dataDir = await makeHome();
  try {
    await using db = await openInlineDb({ dataDir, migrations, operations });
    await using opened = await lookInto(dataDir);
    const { look } = opened;
    for (let n = from; n < to; n += 1) {
      const kind = staleKinds[n % staleKinds.length] ?? 'subagent';
      const piece = await makePiece(db, kind, n);
      tried[kind] = (tried[kind] ?? 0) + 1;
      const first = await claimOf(db, kind, 'first', startMs);
      for (const [, go] of some(random, piece.writes.slice(0, 3))) await go(db, first);
      // Its lease expires while it is paused.
      const second = await claimOf(db, kind, 'second', startMs + 61_000);
      const isOver = random.int(3) === 0;
      if (isOver) await must(piece.ends[random.int(piece.ends.length)], db, second);
      let before = await dump(look);
      for (const [name, go] of shuffled(random, piece.writes)) {
        await go(db, first).catch((error: unknown) => wrong.push(`${kind} ${n}: ${name} fails: ${String(error).slice(0, 200)}`));
        writes += 1;
        const after = await dump(look);
        const changed = differences(before, after);
        before = after;
        if (changed.length > 0) wrong.push(`${kind} ${n}: the stale owner's ${name} has changed ${changed.join(', ')}`);
      }
      if (!isOver) await must(piece.ends[random.int(piece.ends.length)], db, second);
      const left = await owners(look, second.id);
      if (left.owner !== 'second' || left.ended === null) wrong.push(`${kind} ${n}: the work is of ${left.owner} and ended at ${left.ended}`);
      await endAll(db);
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function must(write: Write | undefined, db: Parameters<Write[1]>[0], claim: Parameters<Write[1]>[1]): Promise<void> {
  if (write === undefined) throw new RangeError('no write ends the work');
  await write[1](db, claim);
}

async function lookInto(dataDir: string): Promise<{ readonly look: Look } & AsyncDisposable> {
  const place = onPostgres ? await readFile(join(dataDir, 'postgres-url'), 'utf8') : dataDir;
  const { look, close } = await lookAt(place);
  // Compiling the question takes longer than answering it.
  if (onPostgres) await look('SET jit = off');
  return { look, [Symbol.asyncDispose]: close };
}

/** Every row of every table, as text. */
async function dump(look: Look): Promise<ReadonlyMap<string, string>> {
  if (onPostgres) {
    const tables = await look(`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`);
    const texts = tables.map(({ name }) => `SELECT '${String(name)}' AS name, (SELECT json_agg(t)::text FROM "${String(name)}" t) AS rows`);
    return new Map((await look(texts.join(' UNION ALL '))).map(({ name, rows }) => [String(name), String(rows)]));
  }
  const found = new Map<string, string>();
  for (const { name } of await look(`SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' ORDER BY name`))
    found.set(String(name), JSON.stringify(await look(`SELECT * FROM "${String(name)}"`), plain));
  return found;
}

function plain(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...after].filter(([table, rows]) => before.get(table) !== rows).map(([table]) => table);
}

async function owners(look: Look, id: string): Promise<{ readonly owner: unknown; readonly ended: unknown }> {
  const [row] = await look(`SELECT owner, ended_at_ms AS ended FROM work_item WHERE id = '${id}'`);
  return { owner: row?.['owner'], ended: row?.['ended'] };
}

function some<T>(from: Random, all: readonly T[]): T[] {
  return all.filter(() => from.int(2) === 0);
}

function shuffled<T>(from: Random, all: readonly T[]): T[] {
  return all
    .map((one) => ({ one, at: from.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one);
}
