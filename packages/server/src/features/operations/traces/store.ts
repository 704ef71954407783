import { selectBulk, toBulkRows } from '../../../kernel/db/bulk-rows.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { columns, columnTypes, fromLines, withoutTexts } from './record-row.ts';
import type { TraceRow } from './tables.ts';

const insert = query<TraceRow>(({ db, each }) =>
  db
    .insertInto('traceRecord')
    .values(each(columns))
    // A batch whose write was repeated, because its answer was lost, is there twice.
    .onConflict((conflict) => conflict.column('id').doNothing()),
);

const insertBatch = query<{ records: string }>(({ db, each }) => db.insertInto('traceBatch').values(each(['records'])));

/** Adds records as one batch, by their lines. */
export const appendBatch = operation('traces.append', async (tx, batch: { readonly records: string }): Promise<void> => {
  await tx.run(insertBatch, batch);
});

const oldestBatch = query<object, { seq: number; records: string }>(({ db }) =>
  db.selectFrom('traceBatch').select(['seq', 'records']).orderBy('seq').limit(1),
);
const oldestBatches = query<{ limit: number }, { seq: number; records: string }>(({ db, p }) =>
  db.selectFrom('traceBatch').select(['seq', 'records']).orderBy('seq').limit(p('limit')),
);
const deleteBatch = query<{ seq: number }>(({ db, p }) => db.deleteFrom('traceBatch').where('seq', '=', p('seq')));

const insertAll = query<{ rows: string }>(({ db, sql, p }) =>
  db
    .insertInto('traceRecord')
    .columns(columns)
    .expression(selectBulk({ sql }, columnTypes, p('rows', 'text')))
    .onConflict((conflict) => conflict.column('id').doNothing()),
);

/** Makes rows of the records of the oldest batch; returns false when there is none. */
export const expandBatch = operation(
  'traces.expand',
  async (tx, _input: undefined): Promise<boolean> => {
    const batch = await tx.get(oldestBatch, {});
    if (batch === undefined) return false;
    // Sent together: on PostgreSQL each would cost a round trip.
    await Promise.all(fromLines(batch.records).map((row) => tx.run(insert, row)));
    await tx.run(deleteBatch, { seq: batch.seq });
    return true;
  },
  {
    bulk: {
      accepts: () => true,
      async run(tx, inputs): Promise<readonly boolean[]> {
        const batches = await tx.all(oldestBatches, { limit: inputs.length });
        const rows = batches.flatMap(({ records }) => fromLines(records));
        if (rows.length > 0) await tx.run(insertAll, { rows: toBulkRows(columnTypes, rows) });
        await Promise.all(batches.map(({ seq }) => tx.run(deleteBatch, { seq })));
        return inputs.map((_input, index) => index < batches.length);
      },
    },
  },
);

/** Records of one answer at most. */
export const maxFound = 1000;

const byTrace = query<{ ref: string }, TraceRow>(({ db, p }) =>
  db.selectFrom('traceRecord').select(columns).where('traceId', '=', p('ref')).orderBy('startedAtMs').orderBy('seq').limit(maxFound),
);

const byRoot = query<{ ref: string }, TraceRow>(({ db, p }) =>
  db.selectFrom('traceRecord').select(columns).where('rootRunId', '=', p('ref')).orderBy('startedAtMs').orderBy('seq').limit(maxFound),
);

/** The parts of a turn have its id with a suffix. */
const byId = query<{ ref: string; firstPart: string; lastPart: string }, TraceRow>(({ db, p }) =>
  db
    .selectFrom('traceRecord')
    .select(columns)
    .where((where) => where.or([where('id', '=', p('ref')), where.and([where('id', '>=', p('firstPart')), where('id', '<', p('lastPart'))])]))
    .orderBy('startedAtMs')
    .orderBy('seq')
    .limit(maxFound),
);

const newestOfConversation = query<{ ref: string }, TraceRow>(({ db, p }) =>
  db
    .selectFrom('traceRecord')
    .select(columns)
    .where('conversationRef', '=', p('ref'))
    .where('kind', '=', 'turn')
    .orderBy('startedAtMs', 'desc')
    .orderBy('seq', 'desc')
    .limit(1),
);

const newestOfSession = query<{ ref: string }, TraceRow>(({ db, p }) =>
  db.selectFrom('traceRecord').select(columns).where('sessionKey', '=', p('ref')).orderBy('startedAtMs', 'desc').orderBy('seq', 'desc').limit(1),
);

const conversationOfRun = query<{ ref: string }, { conversationRef: string }>(({ db, p }) =>
  db.selectFrom('subAgentRun').select('conversationRef').where('id', '=', p('ref')),
);

const rootOfGraph = query<{ ref: string }, { rootRunId: string | null }>(({ db, p }) =>
  db.selectFrom('graphRun').select('rootRunId').where('id', '=', p('ref')),
);

/** Returns the records of a reference that no record has itself: a conversation, a session key, a sub-agent run, a graph. */
async function recordsBehind(tx: Tx, ref: string): Promise<TraceRow[]> {
  const newest = [...(await tx.all(newestOfConversation, { ref })), ...(await tx.all(newestOfSession, { ref }))];
  if (newest.length > 0) return newest;
  const run = await tx.get(conversationOfRun, { ref });
  if (run !== undefined) return tx.all(newestOfConversation, { ref: run.conversationRef });
  const graph = await tx.get(rootOfGraph, { ref });
  return graph === undefined || graph.rootRunId === null ? [] : tx.all(byRoot, { ref: graph.rootRunId });
}

const byParent = query<{ ref: string }, TraceRow>(({ db, p }) =>
  db.selectFrom('traceRecord').select(columns).where('parentId', '=', p('ref')).orderBy('startedAtMs').orderBy('seq').limit(maxFound),
);

/** Ids of the root runs that a record may have started or belong to. */
const rootsOf = ({ id, rootRunId }: TraceRow): readonly string[] => [
  `root-turn-${id.replace(/\.\d+$/, '')}`,
  ...(rootRunId === null ? [] : [rootRunId]),
];

/** Returns the records that a reference names, with all that belongs to their root runs, oldest first. */
export const findRecords = operation(
  'traces.find',
  async (tx, { ref }: { readonly ref: string }): Promise<{ readonly rows: readonly TraceRow[]; readonly roots: readonly string[] }> => {
    const named = [
      ...(await tx.all(byId, { ref, firstPart: `${ref}.`, lastPart: `${ref}/` })),
      ...(await tx.all(byTrace, { ref })),
      ...(await tx.all(byRoot, { ref })),
      // The record of a turn is lost when its process dies before it is stored.
      ...(await tx.all(byParent, { ref })),
    ];
    if (named.length === 0) named.push(...(await recordsBehind(tx, ref)));
    const found = new Map(named.map((row) => [row.id, row]));
    const roots = [...new Set(named.flatMap(rootsOf))].slice(0, maxRoots);
    for (const root of roots) {
      // The turn that started the root run has its id.
      const starter = root.startsWith('root-turn-') ? root.slice('root-turn-'.length) : undefined;
      const others =
        starter === undefined || found.has(starter) ? [] : await tx.all(byId, { ref: starter, firstPart: `${starter}.`, lastPart: `${starter}/` });
      for (const row of [...others, ...(await tx.all(byRoot, { ref: root }))]) found.set(row.id, row);
    }
    // What a turn caused and is not part of its root run, such as the delivery of its answer to a chat.
    const turns = new Set([...found.values()].flatMap(({ id, kind }) => (kind === 'turn' ? [id.replace(/\.\d+$/, '')] : [])));
    for (const turn of [...turns].slice(0, maxRoots)) for (const row of await tx.all(byParent, { ref: turn })) found.set(row.id, row);
    const rows = [...found.values()].toSorted(inOrder(found)).slice(0, maxFound);
    return { rows, roots };
  },
);

/** Orders records by their start; what was done before a turn began, for the turn, comes after it. */
function inOrder(found: ReadonlyMap<string, TraceRow>) {
  const at = ({ startedAtMs, parentId }: TraceRow) => Math.max(startedAtMs, found.get(parentId ?? '')?.startedAtMs ?? 0);
  return (a: TraceRow, b: TraceRow) => at(a) - at(b) || Number(a.kind !== 'turn') - Number(b.kind !== 'turn');
}

/** Root runs of one answer at most. */
const maxRoots = 50;

const pageOfConversation = query<{ ref: string; afterSeq: number; limit: number }, { seq: number; detailJson: string }>(({ db, p }) =>
  db
    .selectFrom('traceRecord')
    .select(['seq', 'detailJson'])
    .where('conversationRef', '=', p('ref'))
    .where('seq', '>', p('afterSeq'))
    .orderBy('seq')
    .limit(p('limit')),
);

const replaceDetail = query<{ seq: number; detailJson: string }>(({ db, p }) =>
  db
    .updateTable('traceRecord')
    .set({ detailJson: p('detailJson') })
    .where('seq', '=', p('seq')),
);

/** Records of one transaction of `stripTexts`, so that other writes can run in between. */
const strippedAtOnce = 50;

/** Removes the texts from some records of a conversation; returns the last of them, undefined when there are no more. */
export const stripTexts = operation(
  'traces.stripTexts',
  async (tx, { ref, afterSeq }: { readonly ref: string; readonly afterSeq: number }): Promise<number | undefined> => {
    const rows = await tx.all(pageOfConversation, { ref, afterSeq, limit: strippedAtOnce });
    for (const { seq, detailJson } of rows) {
      const stripped = withoutTexts(detailJson);
      if (stripped !== detailJson) await tx.run(replaceDetail, { seq, detailJson: stripped });
    }
    return rows.length < strippedAtOnce ? undefined : rows.at(-1)?.seq;
  },
);

export const traceOperations = [appendBatch, expandBatch, findRecords, stripTexts];
