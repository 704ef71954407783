import type { SelectQueryBuilder } from 'kysely';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { jsonSql } from '../../../../kernel/db/json-sql.ts';
import { type Dialect, operation, query } from '../../../../kernel/db/operation.ts';
import type { MemoryType, TrustLevel } from '../api.ts';
import { type CitingRow, everybody, insertMemory, memoryColumns, type MemoryInput, type MemoryRow, removeMemory, withCitations } from './store.ts';

/** Entries that a caller may see: of these agents (null: all), of this owner and of everybody (null: all). */
export interface Reach {
  readonly agentIds: readonly string[] | null;
  readonly principalId: string | null;
}

export interface BrowseFilter extends Reach {
  readonly memoryType: MemoryType | null;
  readonly trustLevel: TrustLevel | null;
  readonly tags: readonly string[];
  readonly atMs: number;
  readonly order: 'newest' | 'oldest';
  readonly offset: number;
  readonly limit: number;
  /** Requested characters of each content. */
  readonly characters: number;
}

const knowledgeOwners = 'knowledge:%';
/** Characters of one page, so that it does not block the main thread; there is at least one row. */
const pageCharacters = 1_000_000;

// oxlint-disable-next-line typescript/no-explicit-any -- the builder's own type names the tables
type Rows<Row> = SelectQueryBuilder<any, 'memory', Row>;

function within<Row>(rows: Rows<Row>, { agentIds, principalId }: Reach, atMs: number): Rows<Row> {
  let found = rows.where((is) => is.or([is('memory.expiresAtMs', 'is', null), is('memory.expiresAtMs', '>', atMs)]));
  // Text of folders and sites is in the same index, and is not a memory.
  found = agentIds === null ? found.where('memory.agentId', 'not like', knowledgeOwners) : found.where('memory.agentId', 'in', [...agentIds]);
  if (principalId !== null) found = found.where('memory.principalId', 'in', [principalId, everybody]);
  return found;
}

/** Returns a page in storage order, and the total; it may be shorter than its limit when contents are long. */
export const browseMemories = operation(
  'memory.browse',
  async (tx, filter: BrowseFilter): Promise<{ readonly rows: CitingRow[]; readonly total: number }> => {
    if (filter.agentIds?.length === 0) return { rows: [], total: 0 };
    const narrowed = <Row>(rows: Rows<Row>): Rows<Row> => {
      let found = within(rows, filter, filter.atMs);
      if (filter.memoryType !== null) found = found.where('memory.memoryType', '=', filter.memoryType);
      if (filter.trustLevel !== null) found = found.where('memory.trustLevel', '=', filter.trustLevel);
      return found;
    };
    const tagged = <Row>(rows: Rows<Row>, sql: Parameters<Parameters<typeof tx.build>[0]>[1], dialect: Dialect): Rows<Row> => {
      let found = rows;
      for (const tag of filter.tags) found = found.where(sql<boolean>`${tag} IN ${jsonSql(sql, dialect).texts(sql<string>`memory.tags`)}`);
      return found;
    };
    const [count] = await tx.build<{ total: number }>((db, sql, dialect) =>
      tagged(narrowed(db.selectFrom('memory').select(sql<number>`count(*)`.as('total'))), sql, dialect),
    );
    const direction = filter.order === 'newest' ? 'desc' : 'asc';
    const rows = await tx.build<MemoryRow>((db, sql, dialect) =>
      tagged(narrowed(db.selectFrom('memory').select(memoryColumns)), sql, dialect)
        .orderBy('memory.seq', direction)
        .limit(filter.limit)
        .offset(filter.offset),
    );
    const cut = rows.map((row) => (row.content.length <= filter.characters ? row : { ...row, content: row.content.slice(0, filter.characters) }));
    let sum = 0;
    const end = cut.findIndex(({ content }, index) => (sum += content.length) > pageCharacters && index > 0);
    return { rows: await withCitations(tx, end === -1 ? cut : cut.slice(0, end)), total: count?.total ?? 0 };
  },
);

/** Returns one entry if the caller may see it. */
export const inspectMemory = operation(
  'memory.inspect',
  async (tx, { id, reach, atMs }: { readonly id: string; readonly reach: Reach; readonly atMs: number }): Promise<CitingRow | undefined> => {
    if (reach.agentIds?.length === 0) return undefined;
    const rows = await tx.build<MemoryRow>((db) => within(db.selectFrom('memory').select(memoryColumns), reach, atMs).where('memory.id', '=', id));
    return (await withCitations(tx, rows))[0];
  },
);

export interface MemoryCounts {
  readonly groups: readonly {
    readonly agentId: string;
    readonly memoryType: MemoryType;
    readonly trustLevel: TrustLevel;
    readonly entries: number;
  }[];
  readonly sessions: number;
  readonly embedded: number;
  readonly oldestAtMs: number | null;
}

export const countMemories = operation(
  'memory.count',
  async (tx, { reach, atMs, fingerprint }: { readonly reach: Reach; readonly atMs: number; readonly fingerprint: string }): Promise<MemoryCounts> => {
    if (reach.agentIds?.length === 0) return { groups: [], sessions: 0, embedded: 0, oldestAtMs: null };
    const groups = await tx.build<MemoryCounts['groups'][number]>((db, sql) =>
      within(
        db.selectFrom('memory').select(['memory.agentId', 'memory.memoryType', 'memory.trustLevel', sql<number>`count(*)`.as('entries')]),
        reach,
        atMs,
      ).groupBy(['memory.agentId', 'memory.memoryType', 'memory.trustLevel']),
    );
    const [rest] = await tx.build<Omit<MemoryCounts, 'groups'>>((db, sql) =>
      within(
        db
          .selectFrom('memory')
          .select([
            sql<number>`count(DISTINCT memory.conversation_ref)`.as('sessions'),
            sql<number>`count(CASE WHEN memory.embedded_as = ${fingerprint} THEN 1 END)`.as('embedded'),
            sql<number | null>`min(memory.created_at_ms)`.as('oldestAtMs'),
          ]),
        reach,
        atMs,
      ),
    );
    return { groups, ...(rest ?? { sessions: 0, embedded: 0, oldestAtMs: null }) };
  },
);

const agentsWith = query<object, { agentId: string }>(({ db }) => db.selectFrom('memory').select('agentId').distinct());

/** Lists agents that have memories. */
export const listRememberingAgents = operation('memory.agents', async (tx): Promise<string[]> =>
  (await tx.all(agentsWith, {})).map(({ agentId }) => agentId),
);

export const storeMemory = operation(
  'memory.store',
  async (tx, { memory, audit }: { readonly memory: MemoryInput; readonly audit: AuditRow | undefined }): Promise<void> => {
    await insertMemory(tx, memory);
    if (audit !== undefined) await appendAudit(tx, audit);
  },
);

/** The audit row includes counts of found and missing ids. */
export const deleteMemories = operation(
  'memory.delete',
  async (
    tx,
    { ids, reach, audit }: { readonly ids: readonly string[]; readonly reach: Reach; readonly audit: AuditRow },
  ): Promise<{ deleted: number; audit: AuditRow }> => {
    let deleted = 0;
    const found = await tx.build<{ id: string }>((db) => {
      const rows = db
        .selectFrom('memory')
        .select('id')
        .where('id', 'in', [...ids]);
      return reach.agentIds === null ? rows.where('agentId', 'not like', knowledgeOwners) : rows.where('agentId', 'in', [...reach.agentIds]);
    });
    for (const { id } of found) if (await removeMemory(tx, id)) deleted += 1;
    const counted = { ...audit, metadata: { deleted, failed: ids.length - deleted } };
    await appendAudit(tx, counted);
    return { deleted, audit: counted };
  },
);

/** Rows of one flushing write: a longer one would delay commits of turns. */
const flushedAtOnce = 500;

/** Deletes some of the rows up to `lastSeq`; each step audits what it removed. `more` is false when nothing is left. */
export const flushMemories = operation(
  'memory.flush',
  async (
    tx,
    { agentIds, lastSeq, audit }: { readonly agentIds: readonly string[] | null; readonly lastSeq: number; readonly audit: AuditRow },
  ): Promise<{ removed: number; more: boolean; audit: AuditRow }> => {
    const found = await tx.build<{ id: string }>((db) => {
      const rows = db.selectFrom('memory').select('id').where('seq', '<=', lastSeq).orderBy('seq').limit(flushedAtOnce);
      return agentIds === null ? rows.where('agentId', 'not like', knowledgeOwners) : rows.where('agentId', 'in', [...agentIds]);
    });
    for (const { id } of found) await removeMemory(tx, id);
    const counted = { ...audit, metadata: { entriesRemoved: found.length } };
    await appendAudit(tx, counted);
    return { removed: found.length, more: found.length === flushedAtOnce, audit: counted };
  },
);

const last = query<object, { seq: number }>(({ db, sql }) => db.selectFrom('memory').select(sql<number>`coalesce(max(seq), 0)`.as('seq')));
export const lastMemory = operation('memory.last', async (tx): Promise<number> => (await tx.get(last, {}))?.seq ?? 0);

export const browseOperations = [
  browseMemories,
  inspectMemory,
  countMemories,
  listRememberingAgents,
  storeMemory,
  deleteMemories,
  flushMemories,
  lastMemory,
];
