import type { TurnOrigin } from '@gatehouse/contract';
import type { NotNull } from 'kysely';
import type { RunningTurn } from '../features/delegation/autonomy/methods.ts';
import type { ListedTurn, WaitingPage, WaitingRoots } from '../features/delegation/autonomy/roots/run-list.ts';
import type { Waiting } from '../features/unattended/durable/api.ts';
import { operation, query, type QueryTools } from '../kernel/db/operation.ts';
import { parseJson } from '../kernel/json.ts';

interface Filter {
  readonly principalId: string | null;
  /** JSON. */
  readonly agentIds: string | null;
  /** JSON. */
  readonly except: string;
}

/** Turns that begin a run and wait for something else than an approval. */
const waitingTurns = <Params>({ db, sql, json }: Pick<QueryTools<Params>, 'db' | 'sql' | 'json'>) =>
  db
    .selectFrom('workItem as w')
    .innerJoin('durableTurn as d', 'd.workId', 'w.id')
    .innerJoin('turn as t', 't.id', 'd.turnId')
    .where('w.waitingJson', 'is not', null)
    // Includes those that are just being tried again.
    .where(sql<boolean>`w.state in ('accepted', 'running')`)
    .where(sql<boolean>`${json.text('w.waiting_json', 'kind')} <> 'approval'`)
    .where(sql<boolean>`${json.text('w.waiting_json', 'rootRunId')} is not null`)
    .where(sql<boolean>`${json.text('w.waiting_json', 'runId')} is null`)
    .where(sql<boolean>`${json.text('w.waiting_json', 'endedBy')} is null`);

/** Those without a row of their root. */
const listedTurns = ({ db, sql, p, json }: QueryTools<Filter>) =>
  waitingTurns({ db, sql, json })
    .where(sql<boolean>`(${p('principalId', 'text')} is null or t.principal_id = ${p('principalId')})`)
    .where(sql<boolean>`(${p('agentIds', 'text')} is null or t.agent_id in ${json.texts(p('agentIds'))})`)
    .where(sql<boolean>`${json.text('w.waiting_json', 'rootRunId')} not in ${json.texts(p('except'))}`)
    .where(sql<boolean>`not exists (select 1 from root_run r where r.id = ${json.text('w.waiting_json', 'rootRunId')})`);

const rootOf = ({ json }: Pick<QueryTools<never>, 'json'>) => json.text<string>('w.waiting_json', 'rootRunId').as('rootRunId');
const turnColumns = ['t.agentId', 't.principalId', 't.conversationRef', 't.origin'] as const;

/** The oldest of each root. */
const page = query<Filter & { offset: number; limit: number }, ListedTurn>((tools) =>
  tools.db
    .selectFrom(
      listedTurns(tools)
        .select([
          ...turnColumns,
          rootOf(tools),
          't.id',
          't.startedAtMs',
          tools.sql<number>`row_number() over (partition by ${tools.json.text('w.waiting_json', 'rootRunId')} order by t.started_at_ms, t.id)`.as(
            'place',
          ),
        ])
        .as('listed'),
    )
    .select(['agentId', 'principalId', 'conversationRef', 'origin', 'rootRunId', 'startedAtMs'])
    .$narrowType<{ origin: TurnOrigin }>()
    .where('place', '=', 1)
    .orderBy('startedAtMs', 'desc')
    .orderBy('id', 'desc')
    .limit(tools.p('limit'))
    .offset(tools.p('offset')),
);

const count = query<Filter, { total: number }>((tools) =>
  listedTurns(tools).select(tools.sql<number>`count(distinct ${tools.json.text('w.waiting_json', 'rootRunId')})`.as('total')),
);

const withRows = query<Record<string, never>, { rootRunId: string }>((tools) =>
  waitingTurns(tools)
    .select(rootOf(tools))
    .distinct()
    .where(
      tools.sql<boolean>`exists (select 1 from root_run r where r.id = ${tools.json.text('w.waiting_json', 'rootRunId')} and r.state <> 'active')`,
    ),
);

/** Lists waiting turns at the root of a run, newest first; those whose root has a row are listed by that. */
export const listWaitingRoots = operation(
  'autonomy.listWaiting',
  async (tx, { principalId, agentIds, except, offset, limit }: WaitingPage): Promise<WaitingRoots> => {
    const filter = { principalId, agentIds: agentIds === null ? null : JSON.stringify(agentIds), except: JSON.stringify(except) };
    const { total = 0 } = (await tx.get(count, filter)) ?? {};
    const resuming = (await tx.all(withRows, {})).map(({ rootRunId }) => rootRunId);
    return { turns: total === 0 ? [] : await tx.all(page, { ...filter, offset, limit }), total, resuming };
  },
);

const ofRoot = query<{ rootRunId: string }, RunningTurn>(({ db, sql, p, json }) =>
  waitingTurns({ db, sql, json })
    .select(turnColumns)
    .$narrowType<{ origin: TurnOrigin }>()
    .where(sql<boolean>`${json.text('w.waiting_json', 'rootRunId')} = ${p('rootRunId')}`)
    .orderBy('t.startedAtMs')
    .orderBy('t.id')
    .limit(1),
);

/** Returns the waiting turn at the root of a run. */
export const findWaitingRoot = operation(
  'autonomy.findWaiting',
  async (tx, input: { readonly rootRunId: string }): Promise<RunningTurn | undefined> => tx.get(ofRoot, input),
);

const waitsOf = query<{ rootRunIds: string }, { rootRunId: string; waitingJson: string }>(({ db, sql, p, json }) =>
  db
    .selectFrom('workItem')
    .select([json.text<string>('waiting_json', 'rootRunId').as('rootRunId'), 'waitingJson'])
    .where('waitingJson', 'is not', null)
    .where(sql<boolean>`state = 'accepted'`)
    .where(sql<boolean>`${json.text('waiting_json', 'kind')} <> 'approval'`)
    .where(sql<boolean>`${json.text('waiting_json', 'rootRunId')} in ${json.texts(p('rootRunIds'))}`)
    .$narrowType<{ waitingJson: NotNull }>()
    .orderBy(sql`${json.integer('waiting_json', 'sinceMs')} desc`),
);

/** Returns the oldest wait of each of these roots and of their sub-agents. */
export const readRootWaits = operation(
  'autonomy.rootWaits',
  async (tx, { rootRunIds }: { readonly rootRunIds: readonly string[] }): Promise<ReadonlyMap<string, Waiting>> => {
    const rows = await tx.all(waitsOf, { rootRunIds: JSON.stringify(rootRunIds) });
    // Written only by `waitWork`.
    return new Map(rows.map(({ rootRunId, waitingJson }) => [rootRunId, parseJson(waitingJson) as Waiting]));
  },
);

const taskCharacters = 300;

const tasksOf = query<{ rootRunIds: string }, { rootRunId: string; task: string }>(({ db, sql, p, json }) =>
  db
    .selectFrom('subAgentRun')
    .leftJoin('graphRun', 'graphRun.id', 'subAgentRun.graphId')
    .select([
      'subAgentRun.rootRunId',
      sql<string>`coalesce(graph_run.label, substr(sub_agent_run.task, 1, ${sql.raw(String(taskCharacters))}))`.as('task'),
    ])
    .where(sql<boolean>`sub_agent_run.root_run_id in ${json.texts(p('rootRunIds'))}`)
    // A map keeps the last row of each root: the first sub-agent.
    .orderBy('subAgentRun.queuedAtMs', 'desc')
    .orderBy('subAgentRun.id', 'desc'),
);

/** Returns the label of the graph of each of these roots, otherwise the beginning of the task of its first sub-agent, while that is listed. */
export const readRootTasks = operation(
  'autonomy.rootTasks',
  async (tx, { rootRunIds }: { readonly rootRunIds: readonly string[] }): Promise<ReadonlyMap<string, string>> => {
    const rows = await tx.all(tasksOf, { rootRunIds: JSON.stringify(rootRunIds) });
    return new Map(rows.map(({ rootRunId, task }) => [rootRunId, task]));
  },
);
