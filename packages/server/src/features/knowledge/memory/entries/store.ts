import type { NotNull } from 'kysely';
import { query, type QueryTools, type Tx } from '../../../../kernel/db/operation.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { MemoryCitation, MemoryType, TaintLevel, TrustLevel } from '../api.ts';

/** Owner of entries that every caller of the agent sees. */
export const everybody = '*';
const tenantId = 'default';

/** A row of `memory`. */
export interface MemoryRow {
  /** Position in storage order; the row id of every index. */
  readonly seq: number;
  readonly id: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly content: string;
  readonly memoryType: MemoryType;
  readonly trustLevel: TrustLevel;
  readonly taintLevel: TaintLevel;
  readonly sourceWho: string;
  readonly sourceChannel: string | null;
  readonly conversationRef: string | null;
  readonly sessionKey: string | null;
  /** JSON of `string[]`. */
  readonly tags: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number | null;
  readonly expiresAtMs: number | null;
  readonly proofCount: number;
  readonly confidence: number | null;
  readonly consolidatedAtMs: number | null;
  readonly pinned: 0 | 1;
  readonly useCount: number;
  readonly lastUsedAtMs: number | null;
  readonly failureCount: number;
  /** Fingerprint of the embedder whose vector is stored; null: none yet. */
  readonly embeddedAs: string | null;
}

/** Columns of a `MemoryRow`, for queries of this folder. */
export const memoryColumns = [
  'memory.seq',
  'memory.id',
  'memory.agentId',
  'memory.principalId',
  'memory.content',
  'memory.memoryType',
  'memory.trustLevel',
  'memory.taintLevel',
  'memory.sourceWho',
  'memory.sourceChannel',
  'memory.conversationRef',
  'memory.sessionKey',
  'memory.tags',
  'memory.createdAtMs',
  'memory.updatedAtMs',
  'memory.expiresAtMs',
  'memory.proofCount',
  'memory.confidence',
  'memory.consolidatedAtMs',
  'memory.pinned',
  'memory.useCount',
  'memory.lastUsedAtMs',
  'memory.failureCount',
  'memory.embeddedAs',
] as const;

/** Tags of a row, without a schema: an index of all entries is read through it. */
export function decodeTags(json: string): string[] {
  const value = parseJson(json);
  return Array.isArray(value) ? value.filter((tag) => typeof tag === 'string') : [];
}

/** A row with the ids that it cites. */
export interface CitingRow extends MemoryRow {
  readonly sourceIds: readonly string[];
}

const rowsBySeq = query<{ seqs: string }, MemoryRow>(({ db, p, json }) =>
  db
    .selectFrom('memory')
    .select(memoryColumns)
    .where('memory.seq', 'in', json.integers(p('seqs'))),
);
const citationsOf = query<{ ids: string }, { derivedId: string; sourceId: string }>(({ db, p, json }) =>
  db
    .selectFrom('memorySource')
    .select(['derivedId', 'sourceId'])
    .where('derivedId', 'in', json.texts(p('ids')))
    .where('sourceId', 'is not', null)
    .$narrowType<{ sourceId: NotNull }>()
    .orderBy('id'),
);

/** Returns rows by position, unordered; skips missing ones. */
export async function readRows(tx: Tx, seqs: readonly number[]): Promise<CitingRow[]> {
  return withCitations(tx, await tx.all(rowsBySeq, { seqs: JSON.stringify(seqs) }));
}

export async function withCitations(tx: Tx, rows: readonly MemoryRow[]): Promise<CitingRow[]> {
  const derived = rows.filter((row) => row.proofCount > 0).map((row) => row.id);
  const citations = derived.length === 0 ? [] : await tx.all(citationsOf, { ids: JSON.stringify(derived) });
  const sources = Map.groupBy(citations, ({ derivedId }) => derivedId);
  return rows.map((row) => ({ ...row, sourceIds: (sources.get(row.id) ?? []).map(({ sourceId }) => sourceId) }));
}

/** Input for a new row; `cites` makes it a derived one, whose proof is their number. */
export interface MemoryInput extends Omit<
  MemoryRow,
  'seq' | 'updatedAtMs' | 'proofCount' | 'consolidatedAtMs' | 'useCount' | 'lastUsedAtMs' | 'failureCount' | 'embeddedAs'
> {
  readonly cites: readonly MemoryCitation[];
}

const insertRow = query<Omit<MemoryInput, 'cites'> & { readonly proofCount: number }>(({ db, each }) =>
  db.insertInto('memory').values({
    ...each([
      'id',
      'agentId',
      'principalId',
      'content',
      'memoryType',
      'trustLevel',
      'taintLevel',
      'sourceWho',
      'sourceChannel',
      'conversationRef',
      'sessionKey',
      'tags',
      'createdAtMs',
      'expiresAtMs',
      'proofCount',
      'confidence',
      'pinned',
    ]),
    tenantId,
  }),
);

const insertCitation = query<{ derivedId: string; sourceId: string | null; conversationRef: string | null }>(({ db, p }) =>
  db.insertInto('memorySource').values({ derivedId: p('derivedId'), sourceId: p('sourceId'), conversationRef: p('conversationRef') }),
);

/** Adds a row with its citations; the indexes follow automatically. */
export async function insertMemory(tx: Tx, { cites, ...row }: MemoryInput): Promise<void> {
  await tx.run(insertRow, { ...row, proofCount: cites.length });
  for (const citation of cites)
    await tx.run(insertCitation, {
      derivedId: row.id,
      sourceId: 'sourceId' in citation ? citation.sourceId : null,
      conversationRef: citation.conversationRef ?? null,
    });
}

const deleteById = query<{ id: string }>(({ db, p }) => db.deleteFrom('memory').where('id', '=', p('id')));
// Delete what nothing proves any more: at 0 it would pass for a raw entry.
const dropUnproven = query<{ sourceId: string }>(({ db, p }) =>
  db
    .deleteFrom('memory')
    .where('proofCount', '=', 1)
    .where('id', 'in', db.selectFrom('memorySource').select('derivedId').where('sourceId', '=', p('sourceId'))),
);
const weaken = query<{ sourceId: string }>(({ db, sql, p }) =>
  db
    .updateTable('memory')
    .set({ proofCount: sql<number>`proof_count - 1` })
    .where('id', 'in', db.selectFrom('memorySource').select('derivedId').where('sourceId', '=', p('sourceId'))),
);
const uncite = query<{ sourceId: string }>(({ db, p }) => db.deleteFrom('memorySource').where('sourceId', '=', p('sourceId')));

/** Deletes a memory and unlinks it from derived ones that cite it; deletes those without another proof too. Returns false when there is none. */
export async function removeMemory(tx: Tx, id: string): Promise<boolean> {
  const { changes } = await tx.run(deleteById, { id });
  if (changes === 0) return false;
  await tx.run(dropUnproven, { sourceId: id });
  await tx.run(weaken, { sourceId: id });
  await tx.run(uncite, { sourceId: id });
  return true;
}

const rawOf = query<{ ref: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('memory').select('id').where('conversationRef', '=', p('ref')).where('proofCount', '=', 0),
);
const derivedOf = query<{ ref: string }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('memory')
    .select('id')
    .where('conversationRef', '=', p('ref'))
    .where('proofCount', '>', 0)
    .union(citing(db).where('memorySource.conversationRef', '=', p('ref')))
    .union(
      citing(db)
        .innerJoin('memory as source', 'source.id', 'memorySource.sourceId')
        .where('source.conversationRef', '=', p('ref'))
        .where('source.proofCount', '=', 0),
    ),
);
/** Joined with `memory`, since a cited entry may be gone. */
function citing(db: QueryTools<never>['db']) {
  return db.selectFrom('memorySource').innerJoin('memory', 'memory.id', 'memorySource.derivedId').select('memory.id');
}
const unciteConversation = query<{ id: string; ref: string }>(({ db, p }) =>
  db
    .deleteFrom('memorySource')
    .where('derivedId', '=', p('id'))
    .where((is) =>
      is.or([
        is('conversationRef', '=', p('ref')),
        is('sourceId', 'in', db.selectFrom('memory').select('id').where('conversationRef', '=', p('ref')).where('proofCount', '=', 0)),
      ]),
    ),
);
const weakenBy = query<{ id: string; lost: number }>(({ db, sql, p }) =>
  db
    .updateTable('memory')
    .set({ proofCount: sql<number>`proof_count - ${p('lost')}` })
    .where('id', '=', p('id'))
    .where('proofCount', '>', p('lost')),
);
const disown = query<{ ref: string }>(({ db, p }) =>
  db.updateTable('memory').set({ conversationRef: null, sessionKey: null }).where('conversationRef', '=', p('ref')).where('proofCount', '>', 0),
);

export interface Forgotten {
  readonly memoriesDeleted: number;
  /** Derived memories that cite the conversation or its memories: with `purge` all of them, otherwise those without another proof. */
  readonly derivedDeleted: number;
  /** Derived memories that remain and cite the conversation no longer. */
  readonly derivedUnlinked: number;
}

/** Deletes the raw memories of a conversation, and deletes or unlinks those derived from it (json-rpc.md §4 session.reset_conversation). */
export async function forgetConversationMemories(
  tx: Tx,
  { conversationRef, purgeDerived }: { readonly conversationRef: string; readonly purgeDerived: boolean },
): Promise<Forgotten> {
  const ref = conversationRef;
  const derived = await tx.all(derivedOf, { ref });
  const raw = await tx.all(rawOf, { ref });
  let unproven = 0;
  if (!purgeDerived) {
    for (const { id } of derived) {
      const { changes } = await tx.run(unciteConversation, { id, ref });
      const isProven = (await tx.run(weakenBy, { id, lost: changes })).changes > 0;
      if (!isProven) await removeMemory(tx, id);
      unproven += isProven ? 0 : 1;
    }
    await tx.run(disown, { ref });
  }
  for (const { id } of raw) await removeMemory(tx, id);
  if (purgeDerived) for (const { id } of derived) await removeMemory(tx, id);
  return {
    memoriesDeleted: raw.length,
    derivedDeleted: purgeDerived ? derived.length : unproven,
    derivedUnlinked: purgeDerived ? 0 : derived.length - unproven,
  };
}
