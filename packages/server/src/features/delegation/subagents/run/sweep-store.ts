import { operation, query } from '../../../../kernel/db/operation.ts';
import { ofLiveBoot } from '../../../../kernel/owners.ts';
import { type RunRow, runColumns } from './row.ts';

const stuck = query<{ beforeMs: number; bootId: string }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select('id')
    .where('endedAtMs', 'is', null)
    .where(sql<boolean>`state = 'running'`)
    .where('activeAtMs', '<', p('beforeMs'))
    // A waiting run is checked again by its work.
    .where(sql<boolean>`work_id not in (select id from work_item where state = 'accepted' and waiting_json is not null)`)
    // One that another daemon runs has its watchdog there.
    .where(
      sql<boolean>`not exists (select 1 from work_item where work_item.id = work_id and work_item.state = 'running'
        and work_item.owner <> ${p('bootId')} and ${ofLiveBoot(sql, sql.ref('workItem.owner'))})`,
    ),
);

/** Finds runs that their watchdog should have stopped long ago. */
export const findGhosts = operation(
  'subagents.ghosts',
  async (tx, input: { readonly beforeMs: number; readonly bootId: string }): Promise<string[]> => (await tx.all(stuck, input)).map(({ id }) => id),
);

// After a restart, a step of a node reads the results of all its runs again, and one of them may have waited for days.
const isUnused = `(graph_id is null or graph_id not in (select id from graph_run where state = 'running'))`;

const old = query<{ beforeMs: number; unannouncedBeforeMs: number; limit: number }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(runColumns)
    .where('endedAtMs', '<', p('beforeMs'))
    .where(sql<boolean>`(announced <> 'pending' or ended_at_ms < ${p('unannouncedBeforeMs')})`)
    .where(sql.raw<boolean>(isUnused))
    .orderBy('endedAtMs')
    .limit(p('limit'))
    .forUpdate()
    .skipLocked(),
);

const beyond = query<{ kept: number; limit: number }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(runColumns)
    .where(
      sql<boolean>`id in (
        select id from (select id, row_number() over (partition by principal_id order by ended_at_ms desc, id desc) as place
          from sub_agent_run where ended_at_ms is not null and announced <> 'pending' and ${sql.raw(isUnused)}) as ranked
        where place > ${p('kept')} limit ${p('limit')})`,
    )
    .forUpdate()
    .skipLocked(),
);

const dropRun = query<{ id: string }>(({ db, p }) => db.deleteFrom('subAgentRun').where('id', '=', p('id')));
const dropSteers = query<{ id: string }>(({ db, p }) => db.deleteFrom('subAgentSteer').where('runId', '=', p('id')));
const dropKeys = query<{ beforeMs: number }>(({ db, p }) => db.deleteFrom('subAgentKey').where('atMs', '<', p('beforeMs')));

interface Archival {
  /** Removes runs that ended before this time. */
  readonly beforeMs: number;
  /** Removes even unannounced runs that ended before this time. */
  readonly unannouncedBeforeMs: number;
  readonly keysBeforeMs: number;
  readonly kept: number;
  readonly limit: number;
}

/** Removes runs that ended long ago or exceed the limit of their owner from the list; returns them. */
export const archiveRuns = operation('subagents.archive', async (tx, input: Archival): Promise<RunRow[]> => {
  const { beforeMs, unannouncedBeforeMs, keysBeforeMs, kept, limit } = input;
  const rows = await tx.all(old, { beforeMs, unannouncedBeforeMs, limit });
  for (const row of await tx.all(beyond, { kept, limit })) if (!rows.some(({ id }) => id === row.id)) rows.push(row);
  for (const { id } of rows) {
    await tx.run(dropRun, { id });
    await tx.run(dropSteers, { id });
  }
  await tx.run(dropKeys, { beforeMs: keysBeforeMs });
  return rows;
});

export const sweepOperations = [findGhosts, archiveRuns];
