import { operation, type Tx } from '../../../../kernel/db/operation.ts';
import type { GraphRow } from '../rows.ts';
import { type FoundGraph, graphColumns, readGraph } from '../store.ts';

/** Whose graphs are meant: null stands for all. */
export interface GraphReach {
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
  /** Only those that an agent started. */
  readonly byAgent: boolean;
}

async function within(
  tx: Tx,
  { principalId, agentIds, byAgent }: GraphReach,
  more: { readonly id?: string; readonly label?: string },
): Promise<GraphRow | undefined> {
  const [row] = await tx.build<GraphRow>((db) => {
    let from = db.selectFrom('graph_run').select(graphColumns);
    if (principalId !== null) from = from.where('principal_id', '=', principalId);
    if (agentIds !== null) from = from.where('agent_id', 'in', agentIds);
    if (byAgent) from = from.where('by_agent', '=', 1);
    if (more.id !== undefined) from = from.where('id', '=', more.id);
    // A graph that was loaded is none that runs or ran: it would hide the one that does.
    if (more.label !== undefined) from = from.where('label', '=', more.label).where('state', '<>', 'pending');
    return from.orderBy('id', 'desc').limit(1);
  });
  return row;
}

/** A graph by its id, else the newest of the caller's own with this label; undefined when there is none within reach. */
export const findGraph = operation(
  'graph.find',
  async (tx, { named, ownerId, ...reach }: GraphReach & { readonly named: string; readonly ownerId: string }): Promise<FoundGraph | undefined> => {
    // Anybody may give a graph any label: who sees all does not mean a stranger's by one.
    const row = (await within(tx, reach, { id: named })) ?? (await within(tx, { ...reach, principalId: ownerId }, { label: named }));
    return row && (await readGraph(tx, row.id));
  },
);

/** Whatever a handler goes on with. */
export const loadGraph = operation('graph.load', async (tx, { id }: { readonly id: string }): Promise<FoundGraph | undefined> => readGraph(tx, id));

/** Graphs that run, or ran after a time, the newest first; bounded. */
export const recentGraphs = operation(
  'graph.recent',
  async (tx, { principalId, agentIds, byAgent, sinceMs }: GraphReach & { readonly sinceMs: number }): Promise<GraphRow[]> =>
    tx.build<GraphRow>((db) => {
      let from = db.selectFrom('graph_run').select(graphColumns).where('state', '<>', 'pending');
      if (principalId !== null) from = from.where('principal_id', '=', principalId);
      if (agentIds !== null) from = from.where('agent_id', 'in', agentIds);
      if (byAgent) from = from.where('by_agent', '=', 1);
      return from
        .where((where) => where.or([where('ended_at_ms', 'is', null), where('ended_at_ms', '>=', sinceMs)]))
        .orderBy('id', 'desc')
        .limit(500);
    }),
);

export interface RunListed extends Pick<GraphRow, 'id' | 'label' | 'state' | 'createdAtMs' | 'nodeCount'> {
  readonly outputs: number;
  /** Of the last node that failed. */
  readonly cause: string | null;
}

/** A page of the runs that are kept, the newest first. */
export const listGraphRuns = operation(
  'graph.runs',
  async (
    tx,
    { principalId, agentIds, byAgent, offset, limit }: GraphReach & { readonly offset: number; readonly limit: number },
  ): Promise<{ readonly rows: RunListed[]; readonly total: number }> => {
    const counted = await tx.build<{ total: number }>((db) => {
      let from = db
        .selectFrom('graph_run')
        .select(({ fn }) => fn.countAll<number>().as('total'))
        .where('state', '<>', 'pending');
      if (principalId !== null) from = from.where('principal_id', '=', principalId);
      if (agentIds !== null) from = from.where('agent_id', 'in', agentIds);
      if (byAgent) from = from.where('by_agent', '=', 1);
      return from;
    });
    const rows = await tx.build<RunListed>((db, sql) => {
      let from = db.selectFrom('graph_run').where('state', '<>', 'pending');
      if (principalId !== null) from = from.where('principal_id', '=', principalId);
      if (agentIds !== null) from = from.where('agent_id', 'in', agentIds);
      if (byAgent) from = from.where('by_agent', '=', 1);
      return from
        .select([
          'id',
          'label',
          'state',
          'created_at_ms as createdAtMs',
          'node_count as nodeCount',
          sql<number>`(select count(*) from graph_node where graph_id = graph_run.id and output is not null)`.as('outputs'),
          sql<
            string | null
          >`(select cause from graph_node where graph_id = graph_run.id and state = 'failed' and cause is not null order by ended_at_ms desc limit 1)`.as(
            'cause',
          ),
        ])
        .orderBy('id', 'desc')
        .limit(limit)
        .offset(offset);
    });
    return { rows, total: counted[0]?.total ?? 0 };
  },
);

export const graphReadOperations = [findGraph, loadGraph, recentGraphs, listGraphRuns];
