import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { WorkClaim } from '../../../unattended/durable/api.ts';
import type { AnnouncedRuns } from '../api.ts';
import { type RunRow, runColumns, type AnnounceState } from '../run/row.ts';

const setAnnounced = query<{ id: string; state: AnnounceState }>(({ db, p }) =>
  db
    .updateTable('subAgentRun')
    .set({ announced: p('state'), announceRunId: null })
    .where('id', '=', p('id'))
    .where('announced', '=', 'pending'),
);

/** Marks these runs as announced; earlier announcements stay unchanged. */
export async function markAnnounced(
  tx: Tx,
  { runIds, as }: { readonly runIds: readonly string[]; readonly as: AnnouncedRuns['as'] | 'none' },
): Promise<void> {
  for (const id of runIds) await tx.run(setAnnounced, { id, state: as });
}

/** `markAnnounced` as an operation, called in the transaction of the turn that announces the runs. */
export const markRunsAnnounced = operation('subagents.markAnnounced', markAnnounced);

const sawWaiting = query<{ announceRunId: string }>(({ db, sql, p }) =>
  db
    .updateTable('subAgentRun')
    .set({ announced: 'seen', announceRunId: null })
    .where('announceRunId', '=', p('announceRunId'))
    .where(sql<boolean>`announced = 'pending'`)
    .where(sql<boolean>`seen_turn_id in (select id from turn where id = seen_turn_id and state = 'completed')`),
);

const waitingFor = query<{ announceRunId: string }, { id: string; endedAtMs: number | null }>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(['id', 'endedAtMs'])
    .where('announceRunId', '=', p('announceRunId'))
    .where(sql<boolean>`announced = 'pending'`)
    .orderBy('id')
    // One of them may be ending: whichever commits first, it is announced where this run is.
    .forUpdate(),
);

const forward = query<Pick<RunRow, 'id' | 'announceTo' | 'announceRef' | 'announceTargetJson' | 'announceRunId'>>(({ db, p }) =>
  db
    .updateTable('subAgentRun')
    .set({
      announceTo: p('announceTo'),
      announceRef: p('announceRef'),
      announceTargetJson: p('announceTargetJson'),
      announceRunId: p('announceRunId'),
    })
    .where('id', '=', p('id')),
);

/** Forwards the announcements of runs that an ended run requested and was not shown to its own target. Returns those that have already ended. */
export async function forwardAnnouncements(
  tx: Tx,
  run: Pick<RunRow, 'id' | 'announceTo' | 'announceRef' | 'announceTargetJson' | 'announceRunId'>,
): Promise<string[]> {
  const { id: announceRunId, announceTo, announceRef, announceTargetJson } = run;
  await tx.run(sawWaiting, { announceRunId });
  const waiting = await tx.all(waitingFor, { announceRunId });
  for (const { id } of waiting) await tx.run(forward, { id, announceTo, announceRef, announceTargetJson, announceRunId: run.announceRunId });
  return waiting.filter(({ endedAtMs }) => endedAtMs !== null).map(({ id }) => id);
}

const saw = query<{ announceRef: string }>(({ db, sql, p }) =>
  db
    .updateTable('subAgentRun')
    .set({ announced: 'seen' })
    .where('announceRef', '=', p('announceRef'))
    .where(sql<boolean>`announced = 'pending'`)
    .where('endedAtMs', 'is not', null)
    .where(sql<boolean>`seen_turn_id in (select id from turn where id = seen_turn_id and state = 'completed')`),
);

const unannounced = query<{ announceRef: string }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(runColumns)
    .where('announceRef', '=', p('announceRef'))
    .where(sql<boolean>`announced = 'pending'`)
    .where('announceTo', '=', 'conversation')
    .where('endedAtMs', 'is not', null)
    .orderBy('endedAtMs')
    .orderBy('id')
    // Waits instead of skipping: work that finds its run claimed has nothing to announce.
    .forUpdate(),
);

const claimOne = query<{ id: string; workId: string }>(({ db, p }) =>
  db
    .updateTable('subAgentRun')
    .set({ announceWorkId: p('workId') })
    .where('id', '=', p('id')),
);

/** Returns whether two runs were requested with the same authority, on behalf of the same request. */
function haveSameAuthority(one: RunRow, other: RunRow): boolean {
  return one.tokenId === other.tokenId && one.rootRunId === other.rootRunId && askedOf(one) === askedOf(other);
}

// Written only by `planRun`; the storage threads have no schemas.
const askedOf = ({ optionsJson }: RunRow) => JSON.stringify((parseJson(optionsJson) as { readonly asked: unknown }).asked);

export interface AnnouncementClaim {
  readonly ref: string;
  readonly claim: WorkClaim;
  /** The run that the work is for. */
  readonly runId: string;
  readonly limit: number;
}

/**
 * Returns the runs that a work item announces to a conversation. The same work always gets the same runs, so that a turn resumed
 * after a crash announces the same; otherwise its own run plus all unclaimed ended runs that were requested with the same
 * authority, which the announcing turn acts with.
 */
export async function claimAnnouncements(tx: Tx, { ref, claim: { id: workId }, runId, limit }: AnnouncementClaim): Promise<RunRow[]> {
  await tx.run(saw, { announceRef: ref });
  const rows = await tx.all(unannounced, { announceRef: ref });
  const mine = rows.filter((row) => row.announceWorkId === workId);
  if (mine.length > 0) return mine;
  const head = rows.find(({ id, announceWorkId }) => id === runId && announceWorkId === null);
  if (head === undefined) return [];
  const others = rows.filter((row) => row !== head && row.announceWorkId === null && haveSameAuthority(row, head));
  const free = [head, ...others].slice(0, limit);
  for (const { id } of free) await tx.run(claimOne, { id, workId });
  return free;
}

const see = query<{ id: string; turnId: string; requesterRef: string }>(({ db, sql, p }) =>
  db
    .updateTable('subAgentRun')
    .set({ seenTurnId: p('turnId') })
    .where('id', '=', p('id'))
    .where('requesterRef', '=', p('requesterRef'))
    .where('endedAtMs', 'is not', null)
    .where(sql<boolean>`announced = 'pending'`),
);

/** Marks runs as shown to a turn of the requester; they need no announcement once that turn is committed. */
export const markSeen = operation(
  'subagents.seen',
  async (tx, { runIds, ...by }: { readonly runIds: readonly string[]; readonly turnId: string; readonly requesterRef: string }): Promise<void> => {
    for (const id of runIds) await tx.run(see, { id, ...by });
  },
);

const claimed = query<{ workId: string }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(runColumns)
    .where('announceWorkId', '=', p('workId'))
    .where(sql<boolean>`announced = 'pending'`)
    .orderBy('id'),
);

/** Finds the runs that a work item has claimed but not announced. */
export const findClaimed = operation('subagents.claimed', (tx, input: { readonly workId: string }) => tx.all(claimed, input));

export const announcementOperations = [markRunsAnnounced, markSeen, findClaimed];
