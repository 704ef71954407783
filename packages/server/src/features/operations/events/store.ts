import { operation, query } from '../../../kernel/db/operation.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { DigestedEvent, EventDigest, EventDigestQuery } from './api.ts';

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

const headsBefore = query<{ id: number }, { lastId: number; heads: string }>(({ db, p }) =>
  db.selectFrom('eventBatch').select(['lastId', 'heads']).where('lastId', '<', p('id')).orderBy('lastId', 'desc').limit(pageRows),
);

const bodiesOf = query<{ lastId: number }, { bodies: string }>(({ db, p }) =>
  db.selectFrom('eventBatch').select('bodies').where('lastId', '=', p('lastId')),
);

/** Finds the newest stored events of some kinds, and counts them by category: a search, for the thread of searches. */
export const digestEvents = operation('events.digest', async (tx, asked: EventDigestQuery): Promise<EventDigest> => {
  const events: DigestedEvent[] = [];
  const counts: Record<string, number> = {};
  // The row of the id may have older events too.
  let before = asked.beforeId === undefined ? Number.MAX_SAFE_INTEGER : ((await tx.get(rowAt, { id: asked.beforeId }))?.lastId ?? asked.beforeId) + 1;
  for (let read = 0; read < asked.maxRead;) {
    const rows = await tx.all(headsBefore, { id: before });
    for (const { lastId, heads } of rows) {
      const found: (Omit<DigestedEvent, 'json'> & { readonly line: number })[] = [];
      // Only the recorder writes this column (`batch.ts`); gaps have the kind 0.
      const entries = parseJson(heads) as [id: number, kind: string | 0, atMs: number, owner: string | null, agentId: string | null][];
      read += entries.length;
      for (const [line, [id, kind, atMs, owner, agentId]] of [...entries.entries()].toReversed()) {
        const declared = kind === 0 ? undefined : asked.kinds[kind];
        if (declared === undefined || kind === 0 || !isWithin(asked, id, atMs) || !isVisible(asked, declared.isPublic, owner, agentId)) continue;
        const { category } = declared;
        counts[category] = (counts[category] ?? 0) + 1;
        const isWanted = asked.category === null || asked.category === category;
        if (isWanted && events.length + found.length < asked.limit) found.push({ id, kind, category, atMs, agentId, line });
      }
      if (found.length === 0) continue;
      const lines = (await tx.get(bodiesOf, { lastId }))?.bodies.split('\n') ?? [];
      events.push(...found.map(({ line, ...event }) => ({ ...event, json: lines[line] ?? '' })));
    }
    before = rows.at(-1)?.lastId ?? 0;
    if (rows.length < pageRows) break;
  }
  return { events, counts };
});

function isWithin({ afterId, beforeId = Infinity, sinceMs, untilMs = Infinity }: EventDigestQuery, id: number, atMs: number): boolean {
  return id > afterId && id < beforeId && atMs >= sinceMs && atMs < untilMs;
}

/** The same rule as `viewOf`. */
function isVisible({ owner, agentIds }: EventDigestQuery, isPublic: boolean, ownedBy: string | null, agentId: string | null): boolean {
  if (agentIds !== null && !(agentId === null ? isPublic : agentIds.includes(agentId))) return false;
  return owner === null || isPublic || ownedBy === owner;
}

export const eventOperations = [appendBatch, newestBatch, batchesAfter, batchesBefore, digestEvents];
