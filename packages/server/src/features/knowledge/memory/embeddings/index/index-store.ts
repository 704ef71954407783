import type { Expression } from 'kysely';
import { operation, query, type Tx } from '../../../../../kernel/db/operation.ts';
import type { MemoryType, TrustLevel } from '../../api.ts';
import { decodeTags } from '../../entries/store.ts';
import { type Change, ReadChanges } from './read-changes.ts';
import { VectorIndex } from './vector-index.ts';
import { toInt32s } from './vector-signs.ts';

/** Embedder whose signs are indexed, and their length in 32-bit words. */
export interface SignsOf {
  readonly fingerprint: string;
  readonly words: number;
}

interface Kept {
  readonly of: SignsOf;
  readonly index: VectorIndex;
  /** Changes that are in the index. */
  readonly changes: ReadChanges;
  complete: boolean;
}

interface IndexRow {
  readonly seq: number;
  readonly agentId: string;
  readonly principalId: string;
  readonly memoryType: MemoryType;
  readonly trustLevel: TrustLevel;
  readonly tags: string;
  readonly expiresAtMs: number | null;
  readonly consolidated: 0 | 1;
  readonly signs: Uint8Array | null;
}

/** Rows that one call reads at most, so that searches get their turn: some 50 ms. */
const rowsPerCall = 10_000;

/** One index per connection; it lives as long as the search thread. */
const keptBy = new WeakMap<Tx, Kept>();

const changeRange = query<object, { first: number | null; last: number | null }>(({ db, sql }) =>
  db.selectFrom('memoryChange').select([sql<number | null>`min(version)`.as('first'), sql<number | null>`max(version)`.as('last')]),
);
const changedAfter = query<{ version: number }, Change>(({ db, p }) =>
  db.selectFrom('memoryChange').select(['version', 'seq']).where('version', '>', p('version')),
);
const rowsAfter = query<{ seq: number; fingerprint: string; limit: number }, IndexRow>(({ db, sql, p }) =>
  indexRows(db, sql, p('fingerprint')).where('memory.seq', '>', p('seq')).orderBy('memory.seq').limit(p('limit')),
);
const rowsOf = query<{ seqs: string; fingerprint: string }, IndexRow>(({ db, sql, p, json }) =>
  indexRows(db, sql, p('fingerprint'))
    .where('memory.seq', 'in', json.integers(p('seqs')))
    .orderBy('memory.seq'),
);

type Tools = Parameters<Parameters<typeof query>[0]>[0];

function indexRows(db: Tools['db'], sql: Tools['sql'], fingerprint: Expression<string>) {
  return db
    .selectFrom('memory')
    .leftJoin('memorySign', (join) => join.onRef('memorySign.seq', '=', 'memory.seq').on('memorySign.fingerprint', '=', fingerprint))
    .select([
      'memory.seq',
      'memory.agentId',
      'memory.principalId',
      'memory.memoryType',
      'memory.trustLevel',
      'memory.tags',
      'memory.expiresAtMs',
      sql<0 | 1>`memory.consolidated_at_ms IS NOT NULL`.as('consolidated'),
      'memorySign.signs',
    ]);
}

/** Advances the index to this snapshot; while it is being built, `complete` is false and each call does one step. */
export async function advanceIndex(tx: Tx, of: SignsOf): Promise<{ readonly index: VectorIndex; readonly complete: boolean }> {
  const range = await tx.get(changeRange, {});
  const [first, last] = [range?.first ?? 1, range?.last ?? 0];
  let kept = keptBy.get(tx);
  if (
    kept === undefined ||
    kept.changes.hasMissed(first) ||
    kept.index.sparse ||
    kept.of.fingerprint !== of.fingerprint ||
    kept.of.words !== of.words
  ) {
    kept = { of, index: new VectorIndex(of.words), changes: new ReadChanges(), complete: false };
    // The build reads the rows of all changes that are visible by now.
    kept.changes.read(first, await tx.all(changedAfter, { version: 0 }));
    keptBy.set(tx, kept);
  }
  if (kept.changes.after < last) await applyChanges(tx, kept, first);
  if (!kept.complete) {
    const rows = await tx.all(rowsAfter, { seq: kept.index.lastSeq, fingerprint: of.fingerprint, limit: rowsPerCall });
    for (const row of rows) put(kept.index, row);
    kept.complete = rows.length < rowsPerCall;
  }
  return kept;
}

async function applyChanges(tx: Tx, kept: Kept, first: number): Promise<void> {
  const unread = kept.changes.read(first, await tx.all(changedAfter, { version: kept.changes.after }));
  if (unread.length === 0) return;
  const changed = [...new Set(unread.map(({ seq }) => seq))];
  // During the build, later rows are read in their turn.
  const seqs = kept.complete ? changed : changed.filter((seq) => seq <= kept.index.lastSeq);
  const rows = await tx.all(rowsOf, { seqs: JSON.stringify(seqs), fingerprint: kept.of.fingerprint });
  const present = new Set(rows.map(({ seq }) => seq));
  for (const row of rows) put(kept.index, row);
  for (const seq of seqs) if (!present.has(seq)) kept.index.remove(seq);
}

function put(index: VectorIndex, { tags, consolidated, signs, ...row }: IndexRow): void {
  index.put({
    ...row,
    tags: decodeTags(tags),
    consolidated: consolidated === 1,
    signs: signs === null ? undefined : toInt32s(signs),
  });
}

/** Advances the build of the index before searches need it. Returns true when it is complete. */
export const buildIndex = operation('memory.buildIndex', async (tx, input: SignsOf): Promise<boolean> => (await advanceIndex(tx, input)).complete);
