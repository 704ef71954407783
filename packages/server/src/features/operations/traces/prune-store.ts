import { operation, query } from '../../../kernel/db/operation.ts';

/** Work that is not over, whose records are kept. */
export interface OpenTraces {
  readonly roots: readonly string[];
  readonly turns: readonly string[];
}

export interface TracePruning {
  readonly beforeMs: number;
  /** Number of records that are kept at most: older ones are deleted, whatever their age. */
  readonly most: number;
  readonly open: OpenTraces;
  readonly limit: number;
}

const newest = query<object, { seq: number }>(({ db }) => db.selectFrom('traceRecord').select('seq').orderBy('seq', 'desc').limit(1));

/** Deletes some records beyond age and number; returns how many. */
export const pruneTraces = operation('traces.prune', async (tx, { beforeMs, most, open, limit }: TracePruning): Promise<number> => {
  const last = (await tx.get(newest, {}))?.seq ?? 0;
  let deleted = 0;
  for (const by of ['startedAtMs', 'seq'] as const) {
    const found = await tx.build<{ seq: number }>((db, sql) => {
      let rows = db
        .selectFrom('traceRecord')
        .select('seq')
        .orderBy(by)
        .limit(limit - deleted);
      rows = by === 'seq' ? rows.where('seq', '<=', last - most) : rows.where('startedAtMs', '<', beforeMs);
      if (open.roots.length > 0) rows = rows.where((eb) => eb.or([eb('rootRunId', 'is', null), eb('rootRunId', 'not in', open.roots)]));
      // The parts of a turn have its id with a suffix.
      if (open.turns.length > 0) rows = rows.where(sql<boolean>`substr(id, 1, 39) NOT IN (${sql.join(open.turns)})`);
      return rows;
    });
    const seqs = found.map(({ seq }) => seq);
    if (seqs.length > 0) await tx.build((db) => db.deleteFrom('traceRecord').where('seq', 'in', seqs));
    deleted += seqs.length;
    if (deleted >= limit) break;
  }
  return deleted;
});

const oldest = query<object, { atMs: number }>(({ db }) =>
  db.selectFrom('traceRecord').select('startedAtMs as atMs').orderBy('startedAtMs').limit(1),
);

/** Returns when the oldest record that is kept began. */
export const oldestTrace = operation('traces.oldest', async (tx): Promise<number | undefined> => (await tx.get(oldest, {}))?.atMs);

export const traceRetentionOperations = [pruneTraces, oldestTrace];
