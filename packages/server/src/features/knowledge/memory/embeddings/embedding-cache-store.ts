import { operation, query } from '../../../../kernel/db/operation.ts';

/** Vectors of queries that the telemetry file keeps, and for how long after their last use. */
export const maxCachedVectors = 5_000;
const keptMs = 7 * 86_400_000;

interface CacheKey {
  /** Embedder: `provider/model`. */
  readonly fingerprint: string;
  /** SHA-256 of the text and its owner. */
  readonly textHash: Uint8Array;
}

const byKey = query<CacheKey, { vector: Uint8Array }>(({ db, p }) =>
  db.selectFrom('embeddingCache').select('vector').where('fingerprint', '=', p('fingerprint')).where('textHash', '=', p('textHash')),
);
const put = query<CacheKey & { vector: Uint8Array; usedAtMs: number }>(({ db, p, each }) =>
  db
    .insertInto('embeddingCache')
    .values(each(['fingerprint', 'textHash', 'vector', 'usedAtMs']))
    .onConflict((conflict) => conflict.columns(['fingerprint', 'textHash']).doUpdateSet({ vector: p('vector'), usedAtMs: p('usedAtMs') })),
);
const dropOld = query<{ before: number }>(({ db, p }) => db.deleteFrom('embeddingCache').where('usedAtMs', '<', p('before')));
const dropBeyond = query<object>(({ db, sql }) =>
  db
    .deleteFrom('embeddingCache')
    .where(
      'usedAtMs',
      '<=',
      sql<number>`(SELECT used_at_ms FROM embedding_cache ORDER BY used_at_ms DESC LIMIT 1 OFFSET ${sql.lit(maxCachedVectors)})`,
    ),
);
const dropAll = query<object>(({ db }) => db.deleteFrom('embeddingCache'));
const count = query<object, { total: number }>(({ db, sql }) => db.selectFrom('embeddingCache').select(sql<number>`count(*)`.as('total')));

export const readCachedVector = operation(
  'memory.readCachedVector',
  async (tx, key: CacheKey): Promise<Uint8Array | undefined> => (await tx.get(byKey, key))?.vector,
);

/** Also on a hit, which makes it the newest. */
export const cacheVector = operation(
  'memory.cacheVector',
  async (tx, entry: CacheKey & { readonly vector: Uint8Array; readonly usedAtMs: number }): Promise<void> => {
    await tx.run(put, entry);
    await tx.run(dropOld, { before: entry.usedAtMs - keptMs });
    await tx.run(dropBeyond, {});
  },
);

export const clearCachedVectors = operation('memory.clearCachedVectors', async (tx): Promise<void> => {
  await tx.run(dropAll, {});
});

export const countCachedVectors = operation('memory.countCachedVectors', async (tx): Promise<number> => (await tx.get(count, {}))?.total ?? 0);

export const embeddingCacheOperations = [readCachedVector, cacheVector, clearCachedVectors, countCachedVectors];
