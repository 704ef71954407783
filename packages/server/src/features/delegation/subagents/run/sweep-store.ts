import { operation, query } from '../../../../kernel/db/operation.ts';
import { type RunRow, runColumns } from './row.ts';

const stuck = query<{ beforeMs: number }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select('id')
    .where('ended_at_ms', 'is', null)
    .where(sql<boolean>`state = 'running'`)
    .where('active_at_ms', '<', p('beforeMs'))
    // One that waits is looked at again by its work.
    .where(sql<boolean>`work_id not in (select id from work_item where state = 'accepted' and waiting_json is not null)`),
);

/** Runs that should have ended by their watchdog long ago. */
export const findGhosts = operation('subagents.ghosts', async (tx, input: { readonly beforeMs: number }): Promise<string[]> =>
  (await tx.all(stuck, input)).map(({ id }) => id),
);

const old = query<{ beforeMs: number; untoldBeforeMs: number; limit: number }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select(runColumns)
    .where('ended_at_ms', '<', p('beforeMs'))
    .where(sql<boolean>`(announced <> 'pending' or ended_at_ms < ${p('untoldBeforeMs')})`)
    .orderBy('ended_at_ms')
    .limit(p('limit')),
);

const beyond = query<{ kept: number; limit: number }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select(runColumns)
    .where(
      sql<boolean>`id in (select id from sub_agent_run where ended_at_ms is not null and announced <> 'pending' order by ended_at_ms desc, id desc limit ${p('limit')} offset ${p('kept')})`,
    ),
);

const dropRun = query<{ id: string }>(({ db, p }) => db.deleteFrom('sub_agent_run').where('id', '=', p('id')));
const dropSteers = query<{ id: string }>(({ db, p }) => db.deleteFrom('sub_agent_steer').where('run_id', '=', p('id')));
const dropKeys = query<{ beforeMs: number }>(({ db, p }) => db.deleteFrom('sub_agent_key').where('at_ms', '<', p('beforeMs')));

interface Archival {
  /** Runs that ended before it go. */
  readonly beforeMs: number;
  /** Also those that nobody was told of yet. */
  readonly untoldBeforeMs: number;
  readonly keysBeforeMs: number;
  readonly kept: number;
  readonly limit: number;
}

/** Takes runs that ended long ago, or are too many, off the list; gives them. */
export const archiveRuns = operation('subagents.archive', async (tx, input: Archival): Promise<RunRow[]> => {
  const { beforeMs, untoldBeforeMs, keysBeforeMs, kept, limit } = input;
  const rows = await tx.all(old, { beforeMs, untoldBeforeMs, limit });
  for (const row of await tx.all(beyond, { kept, limit })) if (!rows.some(({ id }) => id === row.id)) rows.push(row);
  for (const { id } of rows) {
    await tx.run(dropRun, { id });
    await tx.run(dropSteers, { id });
  }
  await tx.run(dropKeys, { beforeMs: keysBeforeMs });
  return rows;
});

export const sweepOperations = [findGhosts, archiveRuns];
