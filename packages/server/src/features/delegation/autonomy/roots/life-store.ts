import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../../kernel/owners.ts';
import type { RootSeed } from './live-roots.ts';

const endScripts = query<{ atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('lease')
    .set({ endedAtMs: p('atMs') })
    .where('endedAtMs', 'is', null)
    .where('bearerDigest', 'is not', null)
    .where(ofDeadBoot(sql, 'lease.bootId')),
);

/** After `endScripts`: what is left are the scripts of daemons that live. */
const countScripts = query<Record<never, never>>(({ db, sql }) =>
  db
    .updateTable('rootRun')
    .set({
      openScripts: sql<number>`(select count(*) from lease where root_run_id = root_run.id and bearer_digest is not null and ended_at_ms is null)`,
    })
    .where(sql<boolean>`open_scripts > 0`),
);

const orphan = query<{ atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('rootRun')
    .set({ state: 'orphaned', endedAtMs: p('atMs') })
    .where(sql<boolean>`state = 'active'`)
    .where(sql<boolean>`open_runs + open_graphs + open_scripts <= 0`),
);

interface ActiveRow extends RootSeed {
  readonly id: string;
}

const active = query<Record<never, never>, ActiveRow>(({ db, sql }) =>
  db
    .selectFrom('rootRun')
    .select([
      'id',
      'activeMs',
      sql<number>`case when spent_tokens > ended_tokens then spent_tokens else ended_tokens end`.as('tokens'),
      sql<number>`case when spent_nano > ended_nano then spent_nano else ended_nano end`.as('nano'),
    ])
    .where(sql<boolean>`state = 'active'`),
);

const marked = query<{ sinceMs: number; limit: number }, { id: string; isRevoked: number }>(({ db, sql, p }) =>
  db
    .selectFrom('rootRun')
    .select(['id', sql<number>`case when state = 'revoked' then 1 else 0 end`.as('isRevoked')])
    .where(sql<boolean>`(state = 'revoked' or evicted = 1)`)
    .where('heartbeatAtMs', '>=', p('sinceMs'))
    .orderBy('startedAtMs', 'desc')
    .limit(p('limit')),
);

const revokedLeases = query<{ sinceMs: number; limit: number }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('lease')
    .select('id')
    .where(sql<boolean>`revoked = 1`)
    .where('endedAtMs', '>=', p('sinceMs'))
    .limit(p('limit')),
);

export interface RecoveredRoots {
  readonly active: readonly ActiveRow[];
  readonly revoked: readonly string[];
  readonly evicted: readonly string[];
  readonly revokedLeases: readonly string[];
  readonly orphaned: number;
}

/** Recovers what dead boots left: scripts died with their process, runs and graphs continue; a root without open work becomes orphaned. */
export const recoverRoots = operation(
  'autonomy.recover',
  async (tx: Tx, { atMs, sinceMs, limit }: { readonly atMs: number; readonly sinceMs: number; readonly limit: number }): Promise<RecoveredRoots> => {
    await tx.run(endScripts, { atMs });
    await tx.run(countScripts, {});
    const { changes: orphaned } = await tx.run(orphan, { atMs });
    const rows = await tx.all(marked, { sinceMs, limit });
    return {
      active: await tx.all(active, {}),
      revoked: rows.filter(({ isRevoked }) => isRevoked === 1).map(({ id }) => id),
      evicted: rows.filter(({ isRevoked }) => isRevoked === 0).map(({ id }) => id),
      revokedLeases: (await tx.all(revokedLeases, { sinceMs, limit })).map(({ id }) => id),
      orphaned,
    };
  },
);

const seed = query<{ id: string }, ActiveRow>(({ db, sql, p }) =>
  db
    .selectFrom('rootRun')
    .select([
      'id',
      'activeMs',
      sql<number>`case when spent_tokens > ended_tokens then spent_tokens else ended_tokens end`.as('tokens'),
      sql<number>`case when spent_nano > ended_nano then spent_nano else ended_nano end`.as('nano'),
    ])
    .where('id', '=', p('id')),
);

/** Reads what a root has spent according to its row. */
export const readRoot = operation('autonomy.readRoot', async (tx, input: { readonly id: string }): Promise<ActiveRow | undefined> =>
  tx.get(seed, input),
);

export interface RootSpent {
  readonly id: string;
  readonly tokens: number;
  readonly nano: number;
  readonly activeMs: number;
  readonly unpriced: boolean;
}

const keep = query<{ id: string; tokens: number; nano: number; activeMs: number; unpriced: number }>(({ db, sql, p }) =>
  db
    .updateTable('rootRun')
    // Sums only grow: another daemon that knows the root may know less of it.
    .set({
      spentTokens: sql<number>`case when spent_tokens > ${p('tokens')} then spent_tokens else ${p('tokens')} end`,
      spentNano: sql<number>`case when spent_nano > ${p('nano')} then spent_nano else ${p('nano')} end`,
      activeMs: sql<number>`case when active_ms > ${p('activeMs')} then active_ms else ${p('activeMs')} end`,
      unpriced: sql<number>`unpriced + ${p('unpriced')}`,
    })
    .where('id', '=', p('id')),
);

const beat = query<{ atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('rootRun')
    .set({ heartbeatAtMs: p('atMs') })
    .where(sql<boolean>`state = 'active'`),
);

const activeIds = query<Record<never, never>, { id: string }>(({ db, sql }) =>
  db
    .selectFrom('rootRun')
    .select('id')
    .where(sql<boolean>`state = 'active'`),
);

/** Writes a heartbeat of the active roots with what they spent; returns which are active. */
export const keepRoots = operation(
  'autonomy.keepAlive',
  async (tx, { atMs, spent }: { readonly atMs: number; readonly spent: readonly RootSpent[] }): Promise<string[]> => {
    await tx.run(beat, { atMs });
    for (const { unpriced, ...sums } of spent) await tx.run(keep, { ...sums, unpriced: Number(unpriced) });
    return (await tx.all(activeIds, {})).map(({ id }) => id);
  },
);

const oldRoots = query<{ beforeMs: number; limit: number }>(({ db, p }) =>
  db
    .deleteFrom('rootRun')
    .where('id', 'in', db.selectFrom('rootRun').select('id').where('endedAtMs', '<', p('beforeMs')).limit(p('limit')).forUpdate().skipLocked()),
);

const oldLeases = query<{ beforeMs: number; limit: number }>(({ db, p }) =>
  db
    .deleteFrom('lease')
    .where('id', 'in', db.selectFrom('lease').select('id').where('endedAtMs', '<', p('beforeMs')).limit(p('limit')).forUpdate().skipLocked()),
);

/** Deletes a batch of what ended before a time; returns how many rows. */
export const pruneRoots = operation(
  'autonomy.prune',
  async (tx, input: { readonly beforeMs: number; readonly limit: number }): Promise<number> =>
    (await tx.run(oldLeases, input)).changes + (await tx.run(oldRoots, input)).changes,
);

export const rootLifeOperations = [recoverRoots, readRoot, keepRoots, pruneRoots];
