import type { RawBuilder, sql } from 'kysely';

/**
 * Whether a daemon may still write: what it owns is its own until another one has claimed it (`features/operations/nodes`).
 * One that is not in the table, such as of an earlier version, is dead.
 */
const isLive = (sqlTag: typeof sql, bootId: unknown): RawBuilder<boolean> =>
  sqlTag<boolean>`exists (select 1 from node where node.boot_id = ${bootId} and node.state in ('live', 'draining'))`;

/** SQL: the daemon that runs as this boot may write. For the writes of an owner that have no fence. */
export const ofLiveBoot = isLive;

/** SQL: the boot named in a column is dead, so that what it left may be recovered. */
export const ofDeadBoot = (sqlTag: typeof sql, column: string): RawBuilder<boolean> => sqlTag<boolean>`not ${isLive(sqlTag, sqlTag.ref(column))}`;
