import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { WorkClaim } from '../../../unattended/durable/api.ts';
import type { NewsTold } from '../api.ts';
import { type RunRow, runColumns, type Told } from '../run/row.ts';

const setTold = query<{ id: string; told: Told }>(({ db, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({ announced: p('told'), announce_run_id: null })
    .where('id', '=', p('id'))
    .where('announced', '=', 'pending'),
);

/** The ends of these runs are told; what was told before stays as it is. */
export async function markTold(tx: Tx, { runIds, as }: { readonly runIds: readonly string[]; readonly as: NewsTold['as'] | 'none' }): Promise<void> {
  for (const id of runIds) await tx.run(setTold, { id, told: as });
}

const sawWaiting = query<{ announceRunId: string }>(({ db, sql, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({ announced: 'seen', announce_run_id: null })
    .where('announce_run_id', '=', p('announceRunId'))
    .where(sql<boolean>`announced = 'pending'`)
    .where(sql<boolean>`seen_turn_id in (select id from turn where id = seen_turn_id and state = 'completed')`),
);

const waitingFor = query<{ announceRunId: string }, { id: string; endedAtMs: number | null }>(({ db, sql, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select(['id', 'ended_at_ms as endedAtMs'])
    .where('announce_run_id', '=', p('announceRunId'))
    .where(sql<boolean>`announced = 'pending'`)
    .orderBy('id'),
);

const passOn = query<Pick<RunRow, 'id' | 'announceTo' | 'announceRef' | 'announceTargetJson' | 'announceRunId'>>(({ db, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({
      announce_to: p('announceTo'),
      announce_ref: p('announceRef'),
      announce_target_json: p('announceTargetJson'),
      announce_run_id: p('announceRunId'),
    })
    .where('id', '=', p('id')),
);

/** A run has ended: what it set going and did not look at is told where it is told itself. Gives those that have ended already. */
export async function passNewsOn(
  tx: Tx,
  run: Pick<RunRow, 'id' | 'announceTo' | 'announceRef' | 'announceTargetJson' | 'announceRunId'>,
): Promise<string[]> {
  const { id: announceRunId, announceTo, announceRef, announceTargetJson } = run;
  await tx.run(sawWaiting, { announceRunId });
  const waiting = await tx.all(waitingFor, { announceRunId });
  for (const { id } of waiting) await tx.run(passOn, { id, announceTo, announceRef, announceTargetJson, announceRunId: run.announceRunId });
  return waiting.filter(({ endedAtMs }) => endedAtMs !== null).map(({ id }) => id);
}

const saw = query<{ announceRef: string }>(({ db, sql, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({ announced: 'seen' })
    .where('announce_ref', '=', p('announceRef'))
    .where(sql<boolean>`announced = 'pending'`)
    .where('ended_at_ms', 'is not', null)
    .where(sql<boolean>`seen_turn_id in (select id from turn where id = seen_turn_id and state = 'completed')`),
);

const untold = query<{ announceRef: string }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select(runColumns)
    .where('announce_ref', '=', p('announceRef'))
    .where(sql<boolean>`announced = 'pending'`)
    .where('announce_to', '=', 'conversation')
    .where('ended_at_ms', 'is not', null)
    .orderBy('ended_at_ms')
    .orderBy('id'),
);

const claimOne = query<{ id: string; workId: string }>(({ db, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({ announce_work_id: p('workId') })
    .where('id', '=', p('id')),
);

/** Whether two runs were asked for with the same rights, on behalf of the same request. */
function sameRights(one: RunRow, other: RunRow): boolean {
  return one.tokenId === other.tokenId && one.rootRunId === other.rootRunId && askedOf(one) === askedOf(other);
}

// Written by `planRun` alone; the storage threads know no schemas.
const askedOf = ({ optionsJson }: RunRow) => JSON.stringify((parseJson(optionsJson) as { readonly asked: unknown }).asked);

export interface NewsClaim {
  readonly ref: string;
  readonly claim: WorkClaim;
  /** The run that the work is for. */
  readonly runId: string;
  readonly limit: number;
}

/**
 * What a conversation is to be told by a piece of work: the same each time that this work asks, so that a turn that goes on
 * after a crash tells the same; otherwise its own run, with all that has ended, nobody else tells, and was asked for with the
 * same rights: the turn that tells it acts by them.
 */
export async function claimNews(tx: Tx, { ref, claim: { id: workId }, runId, limit }: NewsClaim): Promise<RunRow[]> {
  await tx.run(saw, { announceRef: ref });
  const rows = await tx.all(untold, { announceRef: ref });
  const mine = rows.filter((row) => row.announceWorkId === workId);
  if (mine.length > 0) return mine;
  const head = rows.find(({ id, announceWorkId }) => id === runId && announceWorkId === null);
  if (head === undefined) return [];
  const others = rows.filter((row) => row !== head && row.announceWorkId === null && sameRights(row, head));
  const free = [head, ...others].slice(0, limit);
  for (const { id } of free) await tx.run(claimOne, { id, workId });
  return free;
}

const see = query<{ id: string; turnId: string; requesterRef: string }>(({ db, sql, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({ seen_turn_id: p('turnId') })
    .where('id', '=', p('id'))
    .where('requester_ref', '=', p('requesterRef'))
    .where('ended_at_ms', 'is not', null)
    .where(sql<boolean>`announced = 'pending'`),
);

/** A turn of the requester was shown these ends: when it is committed, nobody needs to tell them. */
export const markSeen = operation(
  'subagents.seen',
  async (tx, { runIds, ...by }: { readonly runIds: readonly string[]; readonly turnId: string; readonly requesterRef: string }): Promise<void> => {
    for (const id of runIds) await tx.run(see, { id, ...by });
  },
);

const claimed = query<{ workId: string }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select(runColumns)
    .where('announce_work_id', '=', p('workId'))
    .where(sql<boolean>`announced = 'pending'`)
    .orderBy('id'),
);

/** What a piece of work has taken to tell, and has not told. */
export const findClaimed = operation('subagents.claimed', (tx, input: { readonly workId: string }) => tx.all(claimed, input));

export const newsOperations = [markSeen, findClaimed];
