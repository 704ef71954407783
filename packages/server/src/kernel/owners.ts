import type { Expression, RawBuilder, sql } from 'kysely';
import type { QueryTools } from './db/operation.ts';

/**
 * Whether a daemon may still write: what it owns is its own until another one has claimed it (`features/operations/nodes`).
 * One that is not in the table, such as of an earlier version, is dead.
 */
const isLive = (sqlTag: typeof sql, bootId: unknown): RawBuilder<boolean> =>
  sqlTag<boolean>`exists (select 1 from node where node.boot_id = ${bootId} and node.state in ('live', 'draining'))`;

/** SQL: the daemon that runs as this boot may write. */
export const ofLiveBoot = isLive;

/**
 * SQL: the same for the writes of an owner that have no fence. A claim of the boot waits for their commits, which the renewals of its
 * lease do not.
 */
export const whileLive = ({ db, sql: sqlTag }: Pick<QueryTools<never>, 'db' | 'sql'>, bootId: Expression<string>): RawBuilder<boolean> =>
  sqlTag<boolean>`exists ${db.selectFrom('node').select('bootId').where('bootId', '=', bootId).where('state', 'in', ['live', 'draining']).forKeyShare()}`;

/** SQL: the boot named in a column is dead, so that what it left may be recovered. */
export const ofDeadBoot = (sqlTag: typeof sql, column: string): RawBuilder<boolean> => sqlTag<boolean>`not ${isLive(sqlTag, sqlTag.ref(column))}`;
