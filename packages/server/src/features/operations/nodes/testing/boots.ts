import type { Db } from '../../../../kernel/db/db.ts';
import { operation } from '../../../../kernel/db/operation.ts';
import { beginNode, moveNode } from '../store.ts';

/** Adds a daemon that lives until `endBoot`, whatever the clock shows. */
export async function beginBoot(db: Db, bootId: string): Promise<void> {
  await db.write(beginNode, {
    bootId,
    homeId: `home of ${bootId}`,
    version: 'test',
    role: 'active',
    isSole: 0,
    leaseMs: Number.MAX_SAFE_INTEGER,
    atMs: 0,
    prunedBeforeMs: 0,
  });
}

/** Stops a daemon: nothing that it writes as owner is accepted any more, and what it left may be recovered. */
export const endBoot = (db: Db, bootId: string): Promise<void> => db.write(moveNode, { bootId, state: 'ended' });

/** Lets time pass for leases on PostgreSQL, where it is that of the database and no test can step it: their rows grow older. */
export const ageNodes = operation('test.ageNodes', (tx, { ms }: { readonly ms: number }) =>
  tx.build((db, sql, dialect) =>
    db
      .updateTable('node')
      .set({ leaseUntilMs: sql<number>`lease_until_ms - ${ms}`, renewedAtMs: sql<number>`renewed_at_ms - ${ms}` })
      .where(sql.lit(dialect === 'postgres')),
  ),
);
