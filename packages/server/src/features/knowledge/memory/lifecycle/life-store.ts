import { withoutIndex } from '../../../../kernel/db/index-hint.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';
import type { MemoryType } from '../api.ts';
import { type LifeAction, type LifeRow, doubtedConfidence } from './lifecycle-plan.ts';

/** How often a memory was recalled, and how often the turn then failed, since the last count. */
export interface UseCount {
  readonly id: string;
  readonly agentId: string;
  readonly uses: number;
  readonly failures: number;
  readonly atMs: number;
}

const countOne = query<{ id: string; uses: number; failures: number; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('memory')
    .set({
      useCount: sql<number>`use_count + ${p('uses')}`,
      failureCount: sql<number>`failure_count + ${p('failures')}`,
      lastUsedAtMs: sql<number>`case when last_used_at_ms > ${p('atMs')} then last_used_at_ms else ${p('atMs')} end`,
    })
    .where('id', '=', p('id')),
);

/** Adds to the counts of memories; returns the ids of those that still exist. */
export const countUses = operation('memory.countUses', async (tx, { counts }: { readonly counts: readonly UseCount[] }): Promise<string[]> => {
  const present: string[] = [];
  for (const { id, uses, failures, atMs } of counts) {
    const { changes } = await tx.run(countOne, { id, uses, failures, atMs });
    if (changes > 0) present.push(id);
  }
  return present;
});

type StoredLifeRow = Omit<LifeRow, 'pinned' | 'explicit'> & { readonly seq: number; readonly pinned: 0 | 1; readonly explicit: 0 | 1 };

const lifePage = query<{ agentId: string; afterSeq: number; limit: number }, StoredLifeRow>(({ db, sql, p, dialect }) =>
  db
    .selectFrom('memory')
    .leftJoin('memoryDemotion', 'memoryDemotion.seq', 'memory.seq')
    .select([
      'memory.seq',
      'memory.id',
      'memory.memoryType',
      'memory.trustLevel',
      'memory.createdAtMs',
      'memory.expiresAtMs',
      'memory.lastUsedAtMs',
      'memory.useCount',
      'memory.failureCount',
      'memory.proofCount',
      'memory.confidence',
      'memory.consolidatedAtMs',
      'memoryDemotion.atMs as demotedAtMs',
      'memory.pinned',
      sql<0 | 1>`memory.source_who = 'operator'`.as('explicit'),
    ])
    // Not by the index of agents, which would sort all of an agent's entries for each page.
    .where(withoutIndex<string>({ sql, dialect }, 'memory.agentId'), '=', p('agentId'))
    .where('memory.seq', '>', p('afterSeq'))
    .orderBy('memory.seq')
    .limit(p('limit')),
);

/** Returns a page of the data that the lifecycle uses, in storage order; `nextSeq` is where the next one begins, null after the last. */
export const readLifePage = operation(
  'memory.lifePage',
  async (
    tx,
    input: { readonly agentId: string; readonly afterSeq: number; readonly limit: number },
  ): Promise<{ readonly rows: readonly LifeRow[]; readonly nextSeq: number | null }> => {
    const rows = await tx.all(lifePage, input);
    return {
      rows: rows.map(({ seq: _, pinned, explicit, ...row }) => ({ ...row, pinned: pinned === 1, explicit: explicit === 1 })),
      nextSeq: rows.length < input.limit ? null : (rows.at(-1)?.seq ?? null),
    };
  },
);

const promote = query<{ id: string; to: MemoryType }>(({ db, p }) =>
  db
    .updateTable('memory')
    .set({ memoryType: p('to') })
    .where('id', '=', p('id'))
    .where('trustLevel', '=', 'learned')
    .where('pinned', '=', 0),
);
const clearDemotion = query<{ id: string }>(({ db, p }) =>
  db.deleteFrom('memoryDemotion').where('seq', 'in', db.selectFrom('memory').select('seq').where('id', '=', p('id'))),
);
const demote = query<{ id: string; confidence: number | null }>(({ db, sql, p }) =>
  db
    .updateTable('memory')
    .set({
      memoryType: 'working',
      confidence: sql<number | null>`case when coalesce(confidence, 1) > ${p('confidence', 'real')} then ${p('confidence', 'real')}
        when ${p('confidence', 'real')} is not null then coalesce(confidence, 1) else confidence end`,
    })
    .where('id', '=', p('id'))
    .where('trustLevel', '<>', 'system')
    .where('pinned', '=', 0),
);
const markDemoted = query<{ id: string; atMs: number }>(({ db, sql, p }) =>
  db
    .insertInto('memoryDemotion')
    .columns(['seq', 'atMs'])
    .expression(
      db
        .selectFrom('memory')
        .select(['seq', sql`${p('atMs')}`.as('atMs')])
        .where('id', '=', p('id')),
    )
    .onConflict((conflict) => conflict.column('seq').doUpdateSet({ atMs: sql<number>`excluded.at_ms` })),
);
// Citations stay: they record what an evicted entry proved, and forgetting a conversation must find it by them.
const evict = query<{ id: string; unusedSinceMs: number }>(({ db, p }) =>
  db
    .deleteFrom('memory')
    .where('id', '=', p('id'))
    .where('trustLevel', '<>', 'system')
    .where('pinned', '=', 0)
    .where((is) => is.or([is('lastUsedAtMs', 'is', null), is('lastUsedAtMs', '<=', p('unusedSinceMs'))])),
);

export interface LifeCounts {
  readonly promoted: number;
  readonly demoted: number;
  readonly evicted: number;
}

/**
 * Applies a part of a plan that was made at `plannedAtMs`. Entries pinned meanwhile stay as they are, and entries
 * used meanwhile are evicted only if they have expired.
 */
export const applyLifecycle = operation(
  'memory.applyLifecycle',
  async (tx, { actions, plannedAtMs }: { readonly actions: readonly LifeAction[]; readonly plannedAtMs: number }): Promise<LifeCounts> => {
    const counts = { promoted: 0, demoted: 0, evicted: 0 };
    for (const action of actions) {
      const { id } = action;
      if (action.kind === 'promote') {
        const { changes } = await tx.run(promote, { id, to: action.to });
        if (changes > 0) await tx.run(clearDemotion, { id });
        counts.promoted += changes;
      } else if (action.kind === 'demote') {
        const { changes } = await tx.run(demote, { id, confidence: action.reason === 'failures' ? doubtedConfidence : null });
        if (changes > 0) await tx.run(markDemoted, { id, atMs: plannedAtMs });
        counts.demoted += changes;
      } else {
        const isOver = action.reason === 'expired' || action.reason === 'too_old';
        counts.evicted += (await tx.run(evict, { id, unusedSinceMs: isOver ? Number.MAX_SAFE_INTEGER : plannedAtMs })).changes;
      }
    }
    return counts;
  },
);

export const memoryLifeOperations = [countUses, readLifePage, applyLifecycle];
