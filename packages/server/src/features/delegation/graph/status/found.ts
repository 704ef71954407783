import { type CallContext, ownerOf } from '../../../../kernel/call-context.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { FoundGraph } from '../store.ts';
import { notFound, reachOf } from './reach.ts';
import { findGraph } from './read-store.ts';

/** Returns the graph that the caller names by id or label; throws when it cannot see one. */
export async function findVisible(db: Db, named: string, call: CallContext): Promise<FoundGraph> {
  const graph = await db.read(findGraph, { ...reachOf(call), ownerId: ownerOf(call), named });
  if (graph === undefined) throw notFound();
  return graph;
}
