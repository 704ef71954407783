import type { Db } from '../../../../kernel/db/db.ts';
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
