import { operation, type Tx } from '../../../../kernel/db/operation.ts';
import type { GraphRow } from '../rows.ts';
import { type FoundGraph, graphColumns, readGraph } from '../store.ts';

/** The graphs that a caller may see; null means all. */
export interface GraphReach {
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
  /** Only graphs that an agent started. */
  readonly byAgent: boolean;
}

async function within(
  tx: Tx,
  { principalId, agentIds, byAgent }: GraphReach,
  more: { readonly id?: string; readonly label?: string },
): Promise<GraphRow | undefined> {
  const [row] = await tx.build<GraphRow>((db) => {
    let from = db.selectFrom('graphRun').select(graphColumns);
    if (principalId !== null) from = from.where('principalId', '=', principalId);
    if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
    if (byAgent) from = from.where('byAgent', '=', 1);
    if (more.id !== undefined) from = from.where('id', '=', more.id);
    // A loaded graph has not run yet, and would hide the running one.
    if (more.label !== undefined) from = from.where('label', '=', more.label).where('state', '<>', 'pending');
    return from.orderBy('id', 'desc').limit(1);
  });
  return row;
}

/** Finds a graph by its id, otherwise the newest of the caller's own with this label; undefined when the caller may see none. */
export const findGraph = operation(
  'graph.find',
  async (tx, { named, ownerId, ...reach }: GraphReach & { readonly named: string; readonly ownerId: string }): Promise<FoundGraph | undefined> => {
    // Anyone may use any label, so a caller that sees all does not get a stranger's graph by label.
    const row = (await within(tx, reach, { id: named })) ?? (await within(tx, { ...reach, principalId: ownerId }, { label: named }));
    return row && (await readGraph(tx, row.id));
  },
);

/** Loads everything that a handler needs to resume a graph. */
export const loadGraph = operation('graph.load', async (tx, { id }: { readonly id: string }): Promise<FoundGraph | undefined> => readGraph(tx, id));

/** Lists running graphs and those that ran after a time, newest first, up to a limit. */
export const recentGraphs = operation(
  'graph.recent',
  async (tx, { principalId, agentIds, byAgent, sinceMs }: GraphReach & { readonly sinceMs: number }): Promise<GraphRow[]> =>
    tx.build<GraphRow>((db) => {
      let from = db.selectFrom('graphRun').select(graphColumns).where('state', '<>', 'pending');
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (byAgent) from = from.where('byAgent', '=', 1);
      return from
        .where((where) => where.or([where('endedAtMs', 'is', null), where('endedAtMs', '>=', sinceMs)]))
        .orderBy('id', 'desc')
        .limit(500);
    }),
);

type ListedColumn = (typeof listedColumns)[number];
const listedColumns = [
  'id',
  'principalId',
  'agentId',
  'label',
  'state',
  'rootRunId',
  'variablesJson',
  'createdAtMs',
  'startedAtMs',
  'endedAtMs',
  'nodeCount',
] as const;

export interface RunListed extends Pick<GraphRow, ListedColumn> {
  readonly outputs: number;
  readonly tokens: number;
  readonly costNano: number;
  /** Nodes with a call whose price is unknown. */
  readonly unpriced: number;
  /** Beginning of the output, or of the error, of the node that ended last. */
  readonly result: string | null;
  /** Cause of the last failed node. */
  readonly cause: string | null;
}

/** Lists a page of the stored runs, newest first. */
export const listGraphRuns = operation(
  'graph.runs',
  async (
    tx,
    { principalId, agentIds, byAgent, offset, limit }: GraphReach & { readonly offset: number; readonly limit: number },
  ): Promise<{ readonly rows: RunListed[]; readonly total: number }> => {
    const counted = await tx.build<{ total: number }>((db) => {
      let from = db
        .selectFrom('graphRun')
        .select(({ fn }) => fn.countAll<number>().as('total'))
        .where('state', '<>', 'pending');
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (byAgent) from = from.where('byAgent', '=', 1);
      return from;
    });
    const rows = await tx.build<RunListed>((db, sql) => {
      let from = db.selectFrom('graphRun').where('state', '<>', 'pending');
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (byAgent) from = from.where('byAgent', '=', 1);
      return from
        .select([
          ...listedColumns,
          sql<number>`(select coalesce(sum(tokens), 0) from graph_node where graph_id = graph_run.id)`.as('tokens'),
          sql<number>`(select coalesce(sum(cost_nano), 0) from graph_node where graph_id = graph_run.id)`.as('costNano'),
          sql<number>`(select coalesce(sum(unpriced), 0) from graph_node where graph_id = graph_run.id)`.as('unpriced'),
          sql<
            string | null
          >`(select substr(coalesce(output, error), 1, 300) from graph_node where graph_id = graph_run.id and coalesce(output, error) is not null order by ended_at_ms desc, place desc limit 1)`.as(
            'result',
          ),
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
