import type { ListedExecution } from '@gatehouse/contract';
import { operation, type Tx } from '../../../kernel/db/operation.ts';

type Kind = ListedExecution['kind'];
type State = ListedExecution['state'];

const executionStates = ['active', 'completed', 'failed', 'stopped', 'skipped', 'unknown'] as const satisfies readonly State[];

export interface ExecutionRow {
  readonly kind: Kind;
  readonly id: string;
  readonly name: string | null;
  readonly agentId: string;
  readonly state: State;
  readonly startedBy: string;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly errorKind: string | null;
  readonly rootRunId: string | null;
  readonly jobId: string | null;
}

export interface ExecutionPage {
  /** Null means all. */
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
  readonly kinds: readonly Kind[];
  readonly state: State | undefined;
  /** Lists what comes after this one. */
  readonly before: { readonly startedAt: number; readonly id: string } | undefined;
  readonly limit: number;
}

/** States of the tables by what they are called here. */
const statesOf = {
  run: { active: ['active'], completed: ['completed'], failed: ['failed'], stopped: ['revoked'], skipped: [], unknown: ['orphaned'] },
  graph: { active: ['running'], completed: ['completed'], failed: ['failed'], stopped: ['cancelled'], skipped: [], unknown: [] },
  job: {
    active: ['started'],
    completed: ['completed', 'dispatched'],
    failed: ['failed'],
    stopped: ['aborted'],
    skipped: ['skipped'],
    unknown: ['unknown'],
  },
  delivery: {
    active: ['accepted', 'running'],
    completed: ['done'],
    failed: ['failed'],
    stopped: ['aborted'],
    skipped: ['ignored'],
    unknown: ['unknown'],
  },
} satisfies Record<Kind, Record<State, readonly string[]>>;

function stateOf(kind: Kind, stored: string): State {
  return executionStates.find((state) => (statesOf[kind][state] as readonly string[]).includes(stored)) ?? 'unknown';
}

/** SQL: the columns of a source in terms of the list, from which every page is selected in the same way. */
const sources: Readonly<Record<Kind, string>> = {
  run: `select id, null as name, agent_id, principal_id, state, origin as started_by, started_at_ms, ended_at_ms, null as error_kind,
    id as root_run_id, null as job_id from root_run where origin not in ('cron', 'webhook') and graphs = 0`,
  graph: `select id, label as name, agent_id, principal_id, state, case when by_agent = 1 then 'agent' else 'rpc' end as started_by,
    created_at_ms as started_at_ms, ended_at_ms, null as error_kind, root_run_id, null as job_id from graph_run where state <> 'pending'`,
  job: `select o.execution_id as id, (select j.name from cron_job j where j.id = o.job_id) as name, o.agent_id, o.principal_id,
    o.status as state, o.trigger_kind as started_by, o.started_at_ms, o.terminal_at_ms as ended_at_ms, o.error_kind,
    'root-cron-' || o.execution_id as root_run_id, o.job_id from cron_occurrence o`,
  delivery: `select d.id, d.mapping_id as name, d.agent_id, '' as principal_id, coalesce(d.own_state, w.state, 'unknown') as state,
    'webhook' as started_by, d.received_at_ms as started_at_ms, w.ended_at_ms, w.error_kind, null as root_run_id, null as job_id
    from webhook_delivery d left join work_item w on w.kind = 'webhook' and w.work_key = d.id`,
};

interface StoredExecution {
  readonly id: string;
  readonly name: string | null;
  readonly agentId: string;
  readonly principalId: string;
  readonly state: string;
  readonly startedBy: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly errorKind: string | null;
  readonly rootRunId: string | null;
  readonly jobId: string | null;
}

async function ofKind(tx: Tx, kind: Kind, { principalId, agentIds, state, before, limit }: ExecutionPage): Promise<ExecutionRow[]> {
  const names = state === undefined ? undefined : statesOf[kind][state];
  if (names?.length === 0) return [];
  const rows = await tx.build<StoredExecution>((db, sql) => {
    let found = db
      .selectFrom(sql<StoredExecution>`(${sql.raw(sources[kind])})`.as('one'))
      .select(['id', 'name', 'agentId', 'principalId', 'state', 'startedBy', 'startedAtMs', 'endedAtMs', 'errorKind', 'rootRunId', 'jobId']);
    if (principalId !== null) found = found.where('principalId', '=', principalId);
    if (agentIds !== null) found = found.where('agentId', 'in', [...agentIds]);
    if (names !== undefined) found = found.where('state', 'in', [...names]);
    if (before) {
      const { startedAt, id } = before;
      found = found.where('startedAtMs', '<=', startedAt).where((is) => is.or([is('startedAtMs', '<', startedAt), is('id', '<', id)]));
    }
    return found.orderBy('startedAtMs', 'desc').orderBy('id', 'desc').limit(limit);
  });
  return rows.map(({ principalId: _owner, startedAtMs, endedAtMs, ...row }) => ({
    ...row,
    kind,
    state: stateOf(kind, row.state),
    startedAt: startedAtMs,
    endedAt: endedAtMs,
  }));
}

/** Returns a page of what ran or runs, of several kinds, newest first. */
export const listExecutions = operation('executions.list', async (tx, page: ExecutionPage): Promise<ExecutionRow[]> => {
  if (page.agentIds?.length === 0) return [];
  const found: ExecutionRow[] = [];
  for (const kind of page.kinds) found.push(...(await ofKind(tx, kind, page)));
  const isLater = (one: ExecutionRow, other: ExecutionRow) =>
    one.startedAt === other.startedAt ? one.id > other.id : one.startedAt > other.startedAt;
  return found.toSorted((one, other) => (isLater(one, other) ? -1 : 1)).slice(0, page.limit);
});
