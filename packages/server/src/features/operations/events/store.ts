import { operation, query } from '../../../kernel/db/operation.ts';

/** The events of about a second. `total…` count from the first row ever, so that the difference of two rows is what lies between. */
export interface BatchRow {
  readonly firstId: number;
  readonly lastId: number;
  readonly atMs: number;
  readonly count: number;
  readonly chars: number;
  /** Including this row. */
  readonly totalCount: number;
  readonly totalChars: number;
  /** True in the last row of a process that ended in order. */
  readonly ended: boolean;
  /** JSON, see `batch.ts`. */
  readonly heads: string;
  /** One payload per line and head, empty where none was kept. */
  readonly bodies: string;
}

export type BatchText = Pick<BatchRow, 'heads' | 'bodies'>;

const pageChars = 256 * 1024;
const pageRows = 256;
/** Rows that one write drops: pruning runs in small steps, as part of the writes that made it due. */
const pruneRows = 32;

const insert = query<BatchRow>(({ db, each, p }) =>
  db
    .insertInto('eventBatch')
    .values(each(['lastId', 'firstId', 'atMs', 'count', 'chars', 'totalCount', 'totalChars', 'ended', 'heads', 'bodies']))
    // A write whose answer was lost is repeated.
    .onConflict((conflict) => conflict.column('lastId').doUpdateSet({ heads: p('heads'), bodies: p('bodies') })),
);

const oldestRows = query<{ limit: number }, { lastId: number; atMs: number; totalCount: number; totalChars: number }>(({ db, p }) =>
  db.selectFrom('eventBatch').select(['lastId', 'atMs', 'totalCount', 'totalChars']).orderBy('lastId').limit(p('limit')),
);

const deleteUpTo = query<{ lastId: number }>(({ db, p }) => db.deleteFrom('eventBatch').where('lastId', '<=', p('lastId')));

export interface AppendBatch {
  readonly row: BatchRow;
  /** Rows due for deletion; the newest row stays. */
  readonly keep: { readonly sinceMs: number; readonly count: number; readonly chars: number };
}

/** Adds a row and drops some of the oldest beyond the retention. */
export const appendBatch = operation('events.append', async (tx, { row, keep }: AppendBatch): Promise<void> => {
  await tx.run(insert, row);
  let dropTo: number | undefined;
  for (const old of await tx.all(oldestRows, { limit: pruneRows })) {
    const due = old.atMs < keep.sinceMs || old.totalCount <= row.totalCount - keep.count || old.totalChars <= row.totalChars - keep.chars;
    if (!due || old.lastId >= row.lastId) break;
    dropTo = old.lastId;
  }
  if (dropTo !== undefined) await tx.run(deleteUpTo, { lastId: dropTo });
});

const newest = query<object, { lastId: number; totalCount: number; totalChars: number; ended: number }>(({ db }) =>
  db.selectFrom('eventBatch').select(['lastId', 'totalCount', 'totalChars', 'ended']).orderBy('lastId', 'desc').limit(1),
);

export const newestBatch = operation('events.newest', async (tx) => tx.get(newest, {}));

const oldest = query<object, { firstId: number; before: number }>(({ db, sql }) =>
  db
    .selectFrom('eventBatch')
    .select(['firstId', sql<number>`total_count - count`.as('before')])
    .orderBy('lastId')
    .limit(1),
);

type PageRow = BatchText & { readonly firstId: number; readonly lastId: number };

/** A page begins at the row that has, or follows, an id, and ends where the rows hold as much as a page may. */
const rowAt = query<{ id: number }, { firstId: number; lastId: number; endChars: number }>(({ db, p }) =>
  db.selectFrom('eventBatch').select(['firstId', 'lastId', 'totalChars as endChars']).where('lastId', '>=', p('id')).orderBy('lastId').limit(1),
);

const rowUpTo = query<{ id: number }, { endChars: number }>(({ db, p }) =>
  db.selectFrom('eventBatch').select('totalChars as endChars').where('lastId', '<=', p('id')).orderBy('lastId', 'desc').limit(1),
);

const rowsFrom = query<{ lastId: number; endChars: number }, PageRow>(({ db, p }) =>
  db
    .selectFrom('eventBatch')
    .select(['firstId', 'lastId', 'heads', 'bodies'])
    .where('lastId', '>=', p('lastId'))
    .where('totalChars', '<=', p('endChars'))
    .orderBy('lastId')
    .limit(pageRows),
);

const rowsDownFrom = query<{ lastId: number; endChars: number }, PageRow>(({ db, p }) =>
  db
    .selectFrom('eventBatch')
    .select(['firstId', 'lastId', 'heads', 'bodies'])
    .where('lastId', '<=', p('lastId'))
    .where('totalChars', '>=', p('endChars'))
    .orderBy('lastId', 'desc')
    .limit(pageRows),
);

export interface StoredPage {
  /** Returns the oldest id that is kept, and whether there were older ones; undefined when nothing is. */
  readonly oldest: { readonly firstId: number; readonly pruned: boolean } | undefined;
  readonly rows: readonly BatchText[];
  readonly lastId: number | undefined;
}

/** Rows with something after `id`, oldest first. */
export const batchesAfter = operation('events.after', async (tx, { id }: { readonly id: number }): Promise<StoredPage> => {
  const kept = await tx.get(oldest, {});
  const first = await tx.get(rowAt, { id: id + 1 });
  const rows = first === undefined ? [] : await tx.all(rowsFrom, { lastId: first.lastId, endChars: first.endChars + pageChars });
  return {
    oldest: kept === undefined ? undefined : { firstId: kept.firstId, pruned: kept.before > 0 },
    rows: rows.map(({ heads, bodies }) => ({ heads, bodies })),
    lastId: rows.at(-1)?.lastId,
  };
});

/** Rows with something before `id`, newest first; `firstId` is where to continue. */
export const batchesBefore = operation(
  'events.before',
  async (tx, { id }: { readonly id: number }): Promise<{ readonly rows: readonly BatchText[]; readonly firstId: number | undefined }> => {
    const around = await tx.get(rowAt, { id });
    const lastId = around !== undefined && around.firstId < id ? around.lastId : id - 1;
    const first = await tx.get(rowUpTo, { id: lastId });
    const rows = first === undefined ? [] : await tx.all(rowsDownFrom, { lastId, endChars: first.endChars - pageChars });
    return { rows: rows.map(({ heads, bodies }) => ({ heads, bodies })), firstId: rows.at(-1)?.firstId };
  },
);

export const eventOperations = [appendBatch, newestBatch, batchesAfter, batchesBefore];
