import { operation, query, type QueryTools, type Tx, raw } from '../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../kernel/owners.ts';
import type { SystemEvent, WakeLane, WakeReason } from './api.ts';

/** Maximum queued events per agent; the oldest are dropped. */
export const maxQueuedEvents = 20;
/** Maximum stored characters of one event. */
export const maxEventChars = 4_000;
/** Period, and maximum texts per agent, in which the same answer is not delivered again. */
const repeatWindowMs = 24 * 60 * 60_000;
const maxTold = 500;

export interface HeartbeatStateRow {
  readonly agentId: string;
  /** The last due time by the interval that was used; beats due at or before it never start again. */
  readonly lastSlotMs: number;
  readonly lastRunAtMs: number | null;
  readonly consecutiveErrors: number;
  readonly backoffUntilMs: number | null;
  readonly lastErrorKind: 'transient' | 'permanent' | null;
  readonly lastAlertAtMs: number | null;
  readonly stoppedBy: 'auth' | 'billing' | null;
  /** Fingerprint of the configuration under which it was stopped. */
  readonly stoppedUnder: string | null;
}

const stateColumns = [
  'agentId',
  'lastSlotMs',
  'lastRunAtMs',
  'consecutiveErrors',
  'backoffUntilMs',
  'lastErrorKind',
  'lastAlertAtMs',
  'stoppedBy',
  'stoppedUnder',
] as const;

const allStates = query<object, HeartbeatStateRow>(({ db }) => db.selectFrom('heartbeatState').select(stateColumns));

const writtenState = (sql: QueryTools<HeartbeatStateRow>['sql']) => ({
  lastSlotMs: sql<number>`excluded.last_slot_ms`,
  lastRunAtMs: sql<number | null>`excluded.last_run_at_ms`,
  consecutiveErrors: sql<number>`excluded.consecutive_errors`,
  backoffUntilMs: sql<number | null>`excluded.backoff_until_ms`,
  lastErrorKind: sql<HeartbeatStateRow['lastErrorKind']>`excluded.last_error_kind`,
  lastAlertAtMs: sql<number | null>`excluded.last_alert_at_ms`,
  stoppedBy: sql<HeartbeatStateRow['stoppedBy']>`excluded.stopped_by`,
  stoppedUnder: sql<string | null>`excluded.stopped_under`,
});

const upsertState = query<HeartbeatStateRow>(({ db, sql, each }) =>
  db
    .insertInto('heartbeatState')
    .values(each(stateColumns))
    .onConflict((conflict) => conflict.column('agentId').doUpdateSet(writtenState(sql))),
);

const upsertSlot = query<HeartbeatStateRow>(({ db, sql, each }) =>
  db
    .insertInto('heartbeatState')
    .values(each(stateColumns))
    .onConflict((conflict) =>
      conflict
        .column('agentId')
        .doUpdateSet(writtenState(sql))
        .where(sql<boolean>`heartbeat_state.last_slot_ms <> excluded.last_slot_ms`),
    ),
);

/**
 * Stores the row of an agent with the due time that its beat uses; false, and nothing, when a beat has used it: timers may fire in
 * two processes. The time is compared with the last one only, because times repeat when the clock goes back. Part of `beginBeat`.
 */
export async function takeSlot(tx: Tx, row: HeartbeatStateRow): Promise<boolean> {
  return (await tx.run(upsertSlot, row)).changes > 0;
}

/** Stores the whole row of an agent. Part of the operations of a beat. */
export async function saveState(tx: Tx, row: HeartbeatStateRow): Promise<void> {
  await tx.run(upsertState, row);
}

export const keepState = operation('heartbeat.keepState', saveState);

interface EventRow {
  readonly id: number;
  readonly text: string;
  readonly source: string;
  readonly tainted: 0 | 1;
  readonly repeats: number;
  readonly createdAtMs: number;
}
export type QueuedEvent = EventRow;

const eventColumns = ['id', 'text', 'source', 'tainted', 'repeats', 'createdAtMs'] as const;

const byOpKey = query<{ opKey: string }, { id: number }>(({ db, p }) => db.selectFrom('heartbeatEvent').select('id').where('opKey', '=', p('opKey')));

const newest = query<{ agentId: string }, EventRow & { readonly workId: string | null }>(({ db, p }) =>
  db
    .selectFrom('heartbeatEvent')
    .select([...eventColumns, 'workId'])
    .where('agentId', '=', p('agentId'))
    .orderBy('id', 'desc')
    .limit(1)
    // A beat that takes it meanwhile would not show the repeat.
    .forUpdate(),
);

const repeat = query<{ id: number; atMs: number; urgentReason: string | null }>(({ db, sql, p }) =>
  db
    .updateTable('heartbeatEvent')
    .set({
      repeats: sql<number>`repeats + 1`,
      createdAtMs: p('atMs'),
      urgentReason: sql<string | null>`coalesce(urgent_reason, ${p('urgentReason')})`,
    })
    .where('id', '=', p('id')),
);

const insertEvent = query<Omit<SystemEvent, 'urgent' | 'clean'> & { readonly urgentReason: string | null; readonly tainted: 0 | 1 }>(
  ({ db, each, p }) =>
    db
      .insertInto('heartbeatEvent')
      .values({ ...each(['opKey', 'agentId', 'text', 'source', 'tainted', 'urgentReason']), repeats: 1, workId: null, createdAtMs: p('atMs') }),
);

const dropOldest = query<{ agentId: string; kept: number }>(({ db, sql, p }) =>
  raw(
    db,
    sql`delete from heartbeat_event where id in (
    select id from heartbeat_event where agent_id = ${p('agentId')} and work_id is null order by id desc limit 1000 offset ${p('kept')})`,
  ),
);

/**
 * Queues an event for the next beat of an agent, inside the transaction of its cause. An event equal to the one before
 * is counted there; beyond twenty the oldest are dropped.
 */
export async function enqueueSystemEvent(tx: Tx, { urgent, clean, ...event }: SystemEvent): Promise<void> {
  if ((await tx.get(byOpKey, { opKey: event.opKey })) !== undefined) return;
  const text = event.text.slice(0, maxEventChars).toWellFormed();
  const urgentReason = urgent ?? null;
  const tainted = clean === true ? 0 : 1;
  const last = await tx.get(newest, { agentId: event.agentId });
  const isRepeat = last?.workId === null && last.text === text && last.source === event.source && last.tainted === tainted;
  if (last !== undefined && isRepeat) await tx.run(repeat, { id: last.id, atMs: event.atMs, urgentReason });
  else {
    await tx.run(insertEvent, { ...event, text, tainted, urgentReason });
    await tx.run(dropOldest, { agentId: event.agentId, kept: maxQueuedEvents });
  }
}

const waiting = query<{ agentId: string }, EventRow>(({ db, p }) =>
  db.selectFrom('heartbeatEvent').select(eventColumns).where('agentId', '=', p('agentId')).where('workId', 'is', null).orderBy('id'),
);

const take = query<{ agentId: string; workId: string; lastEventId: number }>(({ db, p }) =>
  db
    .updateTable('heartbeatEvent')
    .set({ workId: p('workId') })
    .where('agentId', '=', p('agentId'))
    .where('id', '<=', p('lastEventId'))
    .where('workId', 'is', null),
);

const removeOfWork = query<{ workId: string }>(({ db, p }) => db.deleteFrom('heartbeatEvent').where('workId', '=', p('workId')));

const releaseOfWork = query<{ workId: string }>(({ db, p }) =>
  db.updateTable('heartbeatEvent').set({ workId: null }).where('workId', '=', p('workId')),
);

/** Returns the events queued for the next beat of an agent. */
export const waitingEvents = operation('heartbeat.waiting', async (tx, input: { readonly agentId: string }) => tx.all(waiting, input));

export interface BeatRow {
  readonly workId: string;
  readonly agentId: string;
  readonly correlationId: string;
  readonly lane: WakeLane;
  readonly reason: WakeReason;
  readonly eventCount: number;
  readonly startedAtMs: number;
  /** The boot that began it. */
  readonly bootId: string;
}

const beatColumns = ['workId', 'agentId', 'correlationId', 'lane', 'reason', 'eventCount', 'startedAtMs', 'bootId'] as const;

const insertBeat = query<BeatRow>(({ db, each }) => db.insertInto('heartbeatBeat').values(each(beatColumns)));

/** Opens a beat, which takes the events in its message; false, and nothing, when another beat has taken them. Part of `beginBeat`. */
export async function openBeat(tx: Tx, { lastEventId, ...beat }: BeatRow & { readonly lastEventId: number }): Promise<boolean> {
  const { changes } = await tx.run(take, { agentId: beat.agentId, workId: beat.workId, lastEventId });
  if (beat.eventCount > 0 && changes === 0) return false;
  await tx.run(insertBeat, beat);
  return true;
}

const removeBeat = query<{ workId: string }>(({ db, p }) => db.deleteFrom('heartbeatBeat').where('workId', '=', p('workId')));

/** Closes a beat, and deletes or requeues its events; returns false when it was already closed. Part of `endBeat`. */
export async function closeBeat(tx: Tx, input: { readonly workId: string; readonly agentId: string; readonly handled: boolean }): Promise<boolean> {
  const { changes } = await tx.run(removeBeat, input);
  if (changes === 0) return false;
  if (input.handled) await tx.run(removeOfWork, input);
  else {
    await tx.run(releaseOfWork, input);
    await tx.run(dropOldest, { agentId: input.agentId, kept: maxQueuedEvents });
  }
  return true;
}

const beats = query<object, BeatRow>(({ db, sql }) =>
  db.selectFrom('heartbeatBeat').select(beatColumns).where(ofDeadBoot(sql, 'heartbeatBeat.bootId')),
);

/** Returns the beats of dead boots that are not closed. Part of `recoverBeats`. */
export async function openBeats(tx: Tx): Promise<BeatRow[]> {
  return tx.all(beats, {});
}

const pruneTold = query<{ agentId: string; beforeMs: number; atMs: number }>(({ db, p }) =>
  db
    .deleteFrom('heartbeatTold')
    .where('agentId', '=', p('agentId'))
    // Entries in the future date from before the clock stepped back.
    .where((row) => row.or([row('atMs', '<', p('beforeMs')), row('atMs', '>', p('atMs'))])),
);
const pruneMany = query<{ agentId: string; kept: number }>(({ db, sql, p }) =>
  raw(
    db,
    sql`delete from heartbeat_told where agent_id = ${p('agentId')} and digest in (
    select digest from heartbeat_told where agent_id = ${p('agentId')} order by at_ms desc limit 1000 offset ${p('kept')})`,
  ),
);
const insertTold = query<{ agentId: string; digest: string; atMs: number }>(({ db, p }) =>
  db
    .insertInto('heartbeatTold')
    .values({ agentId: p('agentId'), digest: p('digest'), atMs: p('atMs') })
    .onConflict((conflict) => conflict.columns(['agentId', 'digest']).doNothing()),
);

/** Records a delivered text; returns false when it was already delivered within the last 24 hours. Part of `endBeat`. */
export async function recordDelivered(
  tx: Tx,
  input: { readonly agentId: string; readonly digest: string; readonly atMs: number; readonly ageNowMs: number },
): Promise<boolean> {
  const { agentId, digest, atMs, ageNowMs } = input;
  await tx.run(pruneTold, { agentId, beforeMs: ageNowMs - repeatWindowMs, atMs });
  const { changes } = await tx.run(insertTold, { agentId, digest, atMs });
  await tx.run(pruneMany, { agentId, kept: maxTold });
  return changes > 0;
}

const counts = query<object, { agentId: string; count: number }>(({ db, sql }) =>
  db
    .selectFrom('heartbeatEvent')
    .select(['agentId', sql<number>`count(*)`.as('count')])
    .groupBy('agentId'),
);

/** Counts the queued events by agent, omitting agents without any. */
export const countEvents = operation('heartbeat.countEvents', async (tx) => tx.all(counts, {}));

const urgent = query<object, { agentId: string; reason: WakeReason }>(({ db, sql }) =>
  db
    .selectFrom('heartbeatEvent')
    .select(['agentId', sql<WakeReason>`min(urgent_reason)`.as('reason')])
    .where('urgentReason', 'is not', null)
    .where('workId', 'is', null)
    .groupBy('agentId'),
);

export interface KnownHeartbeats {
  readonly states: readonly HeartbeatStateRow[];
  /** Agents with undelivered urgent events. */
  readonly urgent: readonly { readonly agentId: string; readonly reason: WakeReason }[];
  /** Agents with queued events of any kind. */
  readonly queued: readonly { readonly agentId: string }[];
}

/** Loads everything stored by earlier processes, at start. */
export const loadHeartbeats = operation('heartbeat.load', async (tx): Promise<KnownHeartbeats> => ({
  states: await tx.all(allStates, {}),
  urgent: await tx.all(urgent, {}),
  queued: await tx.all(counts, {}),
}));

const tables = ['heartbeatState', 'heartbeatEvent', 'heartbeatTold'] as const;
const forget = tables.map((table) => query<{ agentId: string }>(({ db, p }) => db.deleteFrom(table).where('agentId', '=', p('agentId'))));

/** Deletes the data of a deleted agent, so that a later agent with the same id starts empty. */
export const forgetHeartbeat = operation('heartbeat.forget', async (tx, input: { readonly agentId: string }): Promise<void> => {
  for (const remove of forget) await tx.run(remove, input);
});

export const heartbeatOperations = [keepState, waitingEvents, countEvents, loadHeartbeats, forgetHeartbeat];
