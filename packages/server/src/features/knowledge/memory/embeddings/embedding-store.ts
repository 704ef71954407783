import type { NotNull } from 'kysely';
import { withoutIndex } from '../../../../kernel/db/index-hint.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';
import { normalized, rotate, signsOf, toBytes } from './index/vector-signs.ts';

/** An entry that has no vector of the current embedder. */
export interface UnembeddedRow {
  readonly seq: number;
  readonly agentId: string;
  readonly principalId: string;
  readonly content: string;
  readonly updatedAtMs: number | null;
}

/** Marks an entry that the embedder refuses, so that it is not retried until the embedder changes. */
export const refusedAs = (fingerprint: string) => `!${fingerprint}`;

const columns = ['seq', 'agentId', 'principalId', 'content', 'updatedAtMs'] as const;
// Uses ranges of the index, so that finished rows are not scanned.
const neverEmbedded = query<{ except: string; limit: number }, UnembeddedRow>(({ db, sql, p, json, dialect }) =>
  db
    .selectFrom('memory')
    .select(columns)
    .where('embeddedAs', 'is', null)
    .where(withoutIndex<string>({ sql, dialect }, 'agentId'), 'not in', json.texts(p('except')))
    .orderBy('seq')
    .limit(p('limit')),
);
const embeddedBetween = query<{ above: string; below: string; except: string; limit: number }, UnembeddedRow>(({ db, sql, p, json, dialect }) =>
  db
    .selectFrom('memory')
    .select(columns)
    .where('embeddedAs', '>', p('above'))
    .where('embeddedAs', '<', p('below'))
    .where(withoutIndex<string>({ sql, dialect }, 'agentId'), 'not in', json.texts(p('except')))
    .orderBy('embeddedAs')
    .limit(p('limit')),
);
const pendingCount = query<{ fingerprint: string; refused: string }, { total: number }>(({ db, sql, p }) =>
  db
    .selectFrom('memory')
    .select(
      sql<number>`count(*) - (SELECT count(*) FROM memory WHERE embedded_as = ${p('fingerprint')}) - (SELECT count(*) FROM memory WHERE embedded_as = ${p('refused')})`.as(
        'total',
      ),
    ),
);
const lastLike = query<{ from: string; to: string }, { embeddedAs: string }>(({ db, sql, p }) =>
  db
    .selectFrom('memory')
    .select('embeddedAs')
    .where('embeddedAs', '>=', p('from'))
    .where('embeddedAs', '<', p('to'))
    // Another model may have a name that continues after the slash.
    .where(sql<string>`substr(embedded_as, length(${p('from')}) + 1)`, 'not like', sql<string>`'%/%'`)
    .orderBy('embeddedAs', 'desc')
    .$narrowType<{ embeddedAs: NotNull }>()
    .limit(1),
);

/** Sorts above every fingerprint, which is ASCII text. */
const end = '\u{10ffff}';

/** Returns some entries of one owner without a vector of this embedder, excluding agents in `except`, oldest first; the rows are the queue, so it survives a restart. */
export const readUnembedded = operation(
  'memory.unembedded',
  async (
    tx,
    { fingerprint, limit, ...input }: { readonly fingerprint: string; readonly limit: number; readonly except: readonly string[] },
  ): Promise<UnembeddedRow[]> => {
    const except = JSON.stringify(input.except);
    const refused = refusedAs(fingerprint);
    let rows = await tx.all(neverEmbedded, { except, limit });
    for (const [above, below] of [
      ['', refused],
      [refused, fingerprint],
      [fingerprint, end],
    ] as const)
      if (rows.length === 0) rows = await tx.all(embeddedBetween, { above, below, except, limit });
    const first = rows[0];
    return rows.filter((row) => row.agentId === first?.agentId && row.principalId === first.principalId);
  },
);

export const countUnembedded = operation(
  'memory.countUnembedded',
  async (tx, { fingerprint }: { readonly fingerprint: string }): Promise<number> =>
    (await tx.get(pendingCount, { fingerprint, refused: refusedAs(fingerprint) }))?.total ?? 0,
);

/** Returns the fingerprint with the given prefix that rows have; reveals the dimensions of an embedder before it is called. */
export const findFingerprint = operation(
  'memory.findFingerprint',
  async (tx, { prefix }: { readonly prefix: string }): Promise<string | undefined> =>
    (await tx.get(lastLike, { from: prefix, to: `${prefix}${end}` }))?.embeddedAs,
);

const markEmbedded = query<{ seq: number; updatedAtMs: number | null; embeddedAs: string }>(({ db, p }) =>
  db
    .updateTable('memory')
    .set({ embeddedAs: p('embeddedAs') })
    .where('seq', '=', p('seq'))
    // Reworded meanwhile: the vector is of the earlier text.
    .where('updatedAtMs', 'is not distinct from', p('updatedAtMs')),
);
const putVector = query<{ seq: number; fingerprint: string; vector: Uint8Array }>(({ db, p }) =>
  db
    .insertInto('memoryVector')
    .values({ seq: p('seq'), fingerprint: p('fingerprint'), vector: p('vector') })
    .onConflict((conflict) => conflict.column('seq').doUpdateSet({ fingerprint: p('fingerprint'), vector: p('vector') })),
);
// A trigger notes the change: in SQLite one on inserts alone.
const removeSigns = query<{ seq: number }>(({ db, p }) => db.deleteFrom('memorySign').where('seq', '=', p('seq')));
const addSigns = query<{ seq: number; fingerprint: string; signs: Uint8Array }>(({ db, each }) =>
  db.insertInto('memorySign').values(each(['seq', 'fingerprint', 'signs'])),
);

export interface EmbeddedRows {
  readonly fingerprint: string;
  readonly rows: readonly { readonly seq: number; readonly updatedAtMs: number | null; readonly vector: Float32Array }[];
}

/** Stores unit vectors with their signs; skips entries that were deleted or reworded meanwhile. */
export const storeVectors = operation('memory.storeVectors', async (tx, { fingerprint, rows }: EmbeddedRows): Promise<void> => {
  for (const { seq, updatedAtMs, vector } of rows) {
    const { changes } = await tx.run(markEmbedded, { seq, updatedAtMs, embeddedAs: fingerprint });
    if (changes === 0) continue;
    const unit = normalized(vector);
    await tx.run(putVector, { seq, fingerprint, vector: toBytes(unit) });
    await tx.run(removeSigns, { seq });
    await tx.run(addSigns, { seq, fingerprint, signs: toBytes(signsOf(rotate(unit))) });
  }
});

export const markRefused = operation(
  'memory.markRefused',
  async (
    tx,
    { seq, updatedAtMs, fingerprint }: { readonly seq: number; readonly updatedAtMs: number | null; readonly fingerprint: string },
  ): Promise<void> => {
    await tx.run(markEmbedded, { seq, updatedAtMs, embeddedAs: refusedAs(fingerprint) });
  },
);

export const embeddingOperations = [readUnembedded, countUnembedded, findFingerprint, storeVectors, markRefused];
