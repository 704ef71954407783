import { withoutIndex } from '../../../../../kernel/db/index-hint.ts';
import { operation, query, type QueryTools } from '../../../../../kernel/db/operation.ts';
import type { MemoryType, TaintLevel, TrustLevel } from '../../api.ts';
import { insertMemory, type MemoryInput } from '../../entries/store.ts';

/** A raw entry that no derived one has absorbed. */
export interface RawEntry {
  readonly seq: number;
  readonly id: string;
  readonly principalId: string;
  readonly content: string;
  readonly memoryType: MemoryType;
  readonly trustLevel: TrustLevel;
  readonly taintLevel: TaintLevel;
  readonly conversationRef: string | null;
  /** JSON of `string[]`. */
  readonly tags: string;
  readonly confidence: number | null;
}

const rawColumns = [
  'seq',
  'id',
  'principalId',
  'content',
  'memoryType',
  'trustLevel',
  'taintLevel',
  'conversationRef',
  'tags',
  'confidence',
] as const;

/** Excludes entries of an operator, pinned ones and those that expire. */
function rawEntries(db: QueryTools<never>['db']) {
  return db
    .selectFrom('memory')
    .select(rawColumns)
    .where('proofCount', '=', 0)
    .where('consolidatedAtMs', 'is', null)
    .where('expiresAtMs', 'is', null)
    .where('pinned', '=', 0)
    .where('trustLevel', '<>', 'system')
    .where('sourceWho', '<>', 'operator');
}

const rawAfter = query<{ agentId: string; afterSeq: number; limit: number }, RawEntry>(({ db, sql, p, dialect }) =>
  rawEntries(db)
    .where(withoutIndex<string>({ sql, dialect }, 'agentId'), '=', p('agentId'))
    .where('seq', '>', p('afterSeq'))
    .orderBy('seq')
    .limit(p('limit')),
);
const rawById = query<{ agentId: string; id: string }, RawEntry>(({ db, p }) =>
  rawEntries(db).where('agentId', '=', p('agentId')).where('id', '=', p('id')),
);
const examinedTo = query<{ agentId: string }, { seq: number }>(({ db, p }) =>
  db.selectFrom('memoryConsolidation').select('examinedToSeq as seq').where('agentId', '=', p('agentId')),
);

/** Returns entries not yet compared with the others, in storage order. */
export const readUnexamined = operation(
  'memory.readUnexamined',
  async (tx, { agentId, limit }: { readonly agentId: string; readonly limit: number }): Promise<RawEntry[]> =>
    tx.all(rawAfter, { agentId, afterSeq: (await tx.get(examinedTo, { agentId }))?.seq ?? 0, limit }),
);

/** Returns those of the named entries that may be folded into a derived one, in the order of the names. */
export const readRaw = operation(
  'memory.readRaw',
  async (tx, { agentId, ids }: { readonly agentId: string; readonly ids: readonly string[] }): Promise<RawEntry[]> => {
    const rows: RawEntry[] = [];
    for (const id of ids) {
      const row = await tx.get(rawById, { agentId, id });
      if (row !== undefined) rows.push(row);
    }
    return rows;
  },
);

const moveExamined = query<{ agentId: string; seq: number; atMs: number }>(({ db, sql, p }) =>
  db
    .insertInto('memoryConsolidation')
    .values({ agentId: p('agentId'), examinedToSeq: p('seq'), atMs: p('atMs') })
    .onConflict((conflict) =>
      conflict.column('agentId').doUpdateSet({ examinedToSeq: sql<number>`excluded.examined_to_seq`, atMs: sql<number>`excluded.at_ms` }),
    ),
);

export const markExamined = operation(
  'memory.markExamined',
  async (tx, input: { readonly agentId: string; readonly seq: number; readonly atMs: number }): Promise<void> => {
    await tx.run(moveExamined, input);
  },
);

const foldIn = query<{ id: string; atMs: number }>(({ db, p }) =>
  db
    .updateTable('memory')
    .set({ consolidatedAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where('proofCount', '=', 0)
    .where('consolidatedAtMs', 'is', null),
);
const isFree = query<{ id: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('memory').select('id').where('id', '=', p('id')).where('proofCount', '=', 0).where('consolidatedAtMs', 'is', null).forUpdate(),
);

/** Stores a derived entry with its citations. Returns false, with nothing stored, when a source was deleted or absorbed meanwhile. */
export const keepDerived = operation(
  'memory.keepDerived',
  async (
    tx,
    { memory, sourceIds, atMs }: { readonly memory: MemoryInput; readonly sourceIds: readonly string[]; readonly atMs: number },
  ): Promise<boolean> => {
    for (const id of sourceIds) if ((await tx.get(isFree, { id })) === undefined) return false;
    await insertMemory(tx, memory);
    for (const id of sourceIds) await tx.run(foldIn, { id, atMs });
    return true;
  },
);

const strengthen = query<{ id: string }>(({ db, sql, p }) =>
  db
    .updateTable('memory')
    .set({ proofCount: sql<number>`proof_count + 1`, confidence: sql<number | null>`1 - (1 - coalesce(confidence, 0.5)) / 2` })
    .where('id', '=', p('id'))
    .where('proofCount', '>', 0),
);
const cite = query<{ derivedId: string; sourceId: string; conversationRef: string | null }>(({ db, p }) =>
  db.insertInto('memorySource').values({ derivedId: p('derivedId'), sourceId: p('sourceId'), conversationRef: p('conversationRef') }),
);

/** Adds one proof to a derived entry. Returns false, with nothing stored, when either is gone or absorbed. */
export const strengthenDerived = operation(
  'memory.strengthenDerived',
  async (
    tx,
    { derivedId, source, atMs }: { readonly derivedId: string; readonly source: Pick<RawEntry, 'id' | 'conversationRef'>; readonly atMs: number },
  ): Promise<boolean> => {
    if ((await tx.get(isFree, { id: source.id })) === undefined) return false;
    if ((await tx.run(strengthen, { id: derivedId })).changes === 0) return false;
    await tx.run(cite, { derivedId, sourceId: source.id, conversationRef: source.conversationRef });
    await tx.run(foldIn, { id: source.id, atMs });
    return true;
  },
);

export const memoryDeriveOperations = [readUnexamined, readRaw, markExamined, keepDerived, strengthenDerived];
