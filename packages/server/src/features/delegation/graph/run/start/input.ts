import type { Params } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import { type CallContext, ownerOf } from '../../../../../kernel/call-context.ts';
import type { Clock } from '../../../../../kernel/clock.ts';
import type { Db } from '../../../../../kernel/db/db.ts';
import type { GraphInput } from '../../definition/definition.ts';
import { type GraphRow, parseDefinition } from '../../rows.ts';
import { notFound, reachOf } from '../../status/reach.ts';
import { findGraph } from '../../status/read-store.ts';

/** How long a loaded graph can be started. */
export const loadedMs = 24 * 3_600_000;

/** Returns the definition to start. A call that may be a retry can name a graph that was already started: the acceptance recognizes it. */
export async function inputOf(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  params: Params<'graph.execute'>,
  call: CallContext,
  isRepeatable: boolean,
): Promise<{ input: GraphInput; loaded?: GraphRow }> {
  if (params.nodes !== undefined) return { input: { ...params, nodes: params.nodes } };
  const found = await db.read(findGraph, { ...reachOf(call), ownerId: ownerOf(call), named: params.graphId ?? '' });
  // A caller that sees all graphs may still start only its own.
  if (found === undefined || found.row.id !== params.graphId || found.row.principalId !== ownerOf(call)) throw notFound();
  const { row } = found;
  if (row.state === 'pending' && row.createdAtMs + loadedMs <= clock.now()) throw notFound();
  if (row.state !== 'pending' && !isRepeatable) throw new AppError('precondition_failed', 'The graph was already started', { param: 'graphId' });
  const { nodes, edges, label, settings = {}, defaultAgentId } = parseDefinition(row.definitionJson);
  const { on_failure, timeout_ms, budget } = params;
  const changed = {
    on_failure: on_failure ?? params.settings?.on_failure,
    timeout_ms: timeout_ms ?? params.settings?.timeout_ms,
    budget: budget ?? params.settings?.budget,
  };
  return { input: { nodes, edges: params.edges ?? edges, label: params.label ?? label, settings, defaultAgentId, ...changed }, loaded: row };
}
