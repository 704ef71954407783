import { AppError } from '../../../kernel/app-error.ts';
import { parseJson } from '../../../kernel/json.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../kernel/owners.ts';
import type { Acceptance, EndOfWait, NewWork, Waiting, WorkClaim, WorkEnd, WorkItem, WorkState, WorkWait } from './api.ts';
import { toWaiting } from './waiting.ts';

/** Maximum queued items per kind; more are rejected at intake. A flood of one kind does not affect the others. */
export const maxWaiting = 10_000;
const retryAfterMs = 5_000;

interface WorkRow {
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly agentId: string | null;
  readonly payloadJson: string;
  readonly fence: number;
  readonly attempts: number;
  readonly resumes: number;
  readonly state: WorkState;
  readonly createdAtMs: number;
  readonly waitingJson: string | null;
}

const rowColumns = [
  'id',
  'kind',
  'workKey as key',
  'agentId',
  'payloadJson',
  'fence',
  'attempts',
  'resumes',
  'state',
  'createdAtMs',
  'waitingJson',
] as const;

// Written only by `waitWork`.
const toWait = (json: string | null): Waiting | undefined => (json === null ? undefined : (parseJson(json) as Waiting));

interface NewWorkRow extends Omit<NewWork, 'payload' | 'owed' | 'claim' | 'fits'> {
  readonly payloadJson: string;
  readonly notBeforeMs: number;
  readonly state: WorkState;
  readonly owner: string;
  /** 1 when the item is started on acceptance, else 0; also the number of the attempt. */
  readonly fence: 0 | 1;
  readonly leaseUntilMs: number;
  readonly startedAtMs: number | null;
}

const insert = query<NewWorkRow>(({ db, each, p }) =>
  db
    .insertInto('workItem')
    .values({
      ...each(['id', 'kind', 'digest', 'agentId', 'payloadJson', 'state', 'owner', 'fence', 'leaseUntilMs', 'notBeforeMs', 'startedAtMs']),
      workKey: p('key'),
      attempts: p('fence'),
      resumes: 0,
      createdAtMs: p('atMs'),
    })
    .onConflict((conflict) => conflict.columns(['kind', 'workKey']).doNothing()),
);

const byKey = query<{ kind: string; key: string }, { id: string; digest: string }>(({ db, p }) =>
  db.selectFrom('workItem').select(['id', 'digest']).where('kind', '=', p('kind')).where('workKey', '=', p('key')),
);

// Reads as many entries of the index as there are queued items. Binding the state as a parameter would not use that partial index.
const lastPlace = query<{ kind: string }, { kind: string }>(({ db, sql, p }) =>
  db
    .selectFrom('workItem')
    .select('kind')
    .where('kind', '=', p('kind'))
    .where(sql<boolean>`state = 'accepted'`)
    .limit(1)
    .offset(maxWaiting - 1),
);

/** Whether an item fits in the queue. Where intakes are not SERIALIZABLE, concurrent ones may exceed the limit by their number. */
async function hasCapacity(tx: Tx, kind: string): Promise<boolean> {
  return (await tx.get(lastPlace, { kind })) === undefined;
}

const waiting = query<{ kind: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('workItem')
    .select(sql<number>`count(*)`.as('count'))
    .where('kind', '=', p('kind'))
    .where(sql<boolean>`state = 'accepted'`),
);

/** Returns the number of queued items of a kind. */
export const countWaiting = operation(
  'durable.countWaiting',
  async (tx, input: { readonly kind: string }): Promise<number> => (await tx.get(waiting, input))?.count ?? 0,
);

const unclaimed = { state: 'accepted', owner: '', fence: 0, leaseUntilMs: 0, startedAtMs: null } as const;

/**
 * Accepts a work item inside the caller's transaction. A known key does not create a second item.
 * Throws `unavailable`, before anything is written, when the queue of the kind is full.
 */
export async function acceptWork(tx: Tx, { payload, owed, claim, fits, ...work }: NewWork): Promise<Acceptance> {
  const { kind, key, digest, atMs } = work;
  if (owed === true || claim !== undefined || fits === true || (await hasCapacity(tx, kind))) {
    const held = claim === undefined ? unclaimed : { state: 'running' as const, fence: 1 as const, ...claim, startedAtMs: atMs };
    const row = { ...work, ...held, payloadJson: JSON.stringify(payload ?? null), notBeforeMs: work.notBeforeMs ?? atMs };
    if ((await tx.run(insert, row)).changes > 0) return { accepted: true };
  }
  const found = await tx.get(byKey, { kind, key });
  if (found === undefined) throw new AppError('unavailable', `The work queue is full (limit ${maxWaiting})`, { retryAfterMs });
  return { accepted: false, id: found.id, sameDigest: found.digest === digest };
}

/** Writes of an owner to its item: one conditional update, or one under a lock of the row. */
const ofOneItem = { isolation: 'read committed', orderKey: ({ id }: WorkClaim) => id } as const;

export interface Settlement extends WorkClaim {
  readonly state: WorkEnd;
  /** Any JSON value. */
  readonly result?: unknown;
  readonly errorKind?: string | null;
  readonly atMs: number;
}

const settle = query<WorkClaim & { state: WorkEnd; resultJson: string | null; errorKind: string | null; atMs: number }>(({ db, p }) =>
  db
    .updateTable('workItem')
    .set({
      state: p('state'),
      resultJson: p('resultJson'),
      errorKind: p('errorKind'),
      endedAtMs: p('atMs'),
      leaseUntilMs: 0,
      waitingJson: null,
    })
    .where('id', '=', p('id'))
    .where('owner', '=', p('owner'))
    .where('fence', '=', p('fence'))
    .where('state', '=', 'running'),
);

/** Ends a work item. Returns false when the claim was lost; the caller must then stop, discard its results and send nothing. */
export async function settleWork(tx: Tx, { id, owner, fence, state, result, errorKind = null, atMs }: Settlement): Promise<boolean> {
  const resultJson = result === undefined ? null : JSON.stringify(result);
  const { changes } = await tx.run(settle, { id, owner, fence, state, resultJson, errorKind, atMs });
  return changes > 0;
}

const cancel = query<{ id: string; errorKind: string; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('workItem')
    .set({ state: 'aborted', fence: sql<number>`fence + 1`, errorKind: p('errorKind'), endedAtMs: p('atMs'), leaseUntilMs: 0, waitingJson: null })
    .where('id', '=', p('id'))
    .where('endedAtMs', 'is', null),
);

/** Ends a work item regardless of its owner, which can then write nothing; returns false when it had already ended. */
export async function cancelWork(tx: Tx, input: { readonly id: string; readonly errorKind: string; readonly atMs: number }): Promise<boolean> {
  return (await tx.run(cancel, input)).changes > 0;
}

const unclaimedByKey = query<{ kind: string; key: string }, { id: string; payloadJson: string }>(({ db, sql, p }) =>
  db
    .selectFrom('workItem')
    .select(['id', 'payloadJson'])
    .where('kind', '=', p('kind'))
    .where('workKey', '=', p('key'))
    .where(sql<boolean>`state = 'accepted' and attempts = 0 and resumes = 0`)
    .forUpdate(),
);
const setPayload = query<{ id: string; payloadJson: string }>(({ db, p }) =>
  db
    .updateTable('workItem')
    .set({ payloadJson: p('payloadJson') })
    .where('id', '=', p('id')),
);

/** Replaces the payload of an item that has not started by what `change` returns; false when there is no such item, or it returns nothing. */
export async function changeUnclaimed(
  tx: Tx,
  { kind, key }: { readonly kind: string; readonly key: string },
  change: (payload: unknown) => unknown,
): Promise<boolean> {
  const row = await tx.get(unclaimedByKey, { kind, key });
  const payload = row && change(parseJson(row.payloadJson));
  if (row === undefined || payload === undefined) return false;
  await tx.run(setPayload, { id: row.id, payloadJson: JSON.stringify(payload) });
  return true;
}

/** Ends an item that nobody has begun, as aborted; false when there is none. */
export async function dropUnclaimed(
  tx: Tx,
  { kind, key, atMs }: { readonly kind: string; readonly key: string; readonly atMs: number },
): Promise<boolean> {
  const row = await tx.get(unclaimedByKey, { kind, key });
  return row !== undefined && (await cancelWork(tx, { id: row.id, errorKind: 'deleted', atMs }));
}

const held = query<WorkClaim, { id: string }>(({ db, p }) =>
  db
    .selectFrom('workItem')
    .select('id')
    .where('id', '=', p('id'))
    .where('owner', '=', p('owner'))
    .where('fence', '=', p('fence'))
    .where('state', '=', 'running')
    .forShare(),
);

/**
 * Returns whether a claim still holds, and keeps it until the commit. Check it in the transaction of each write that a stale owner must not
 * make: without the lock, a write that is late by the clock could still be ordered before the take-over.
 */
export async function holdsWork(tx: Tx, { id, owner, fence }: WorkClaim): Promise<boolean> {
  return (await tx.get(held, { id, owner, fence })) !== undefined;
}

const unended = query<{ id: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('workItem').select('id').where('id', '=', p('id')).where('endedAtMs', 'is', null).forShare(),
);

/** Returns whether a work item is still open, regardless of its owner. */
export async function isOpenWork(tx: Tx, id: string): Promise<boolean> {
  return (await tx.get(unended, { id })) !== undefined;
}

interface Retry extends WorkClaim {
  readonly errorKind: string;
  readonly notBeforeMs: number;
}

const putBack = query<WorkClaim & { errorKind: string; notBeforeMs: number }>(({ db, p }) =>
  db
    .updateTable('workItem')
    .set({ state: 'accepted', owner: '', leaseUntilMs: 0, errorKind: p('errorKind'), notBeforeMs: p('notBeforeMs') })
    .where('id', '=', p('id'))
    .where('owner', '=', p('owner'))
    .where('fence', '=', p('fence'))
    .where('state', '=', 'running'),
);

/** Returns a work item to the queue for a later retry; the next claim counts the attempt. Returns false like `settleWork`. */
export async function retryWork(tx: Tx, { id, owner, fence, errorKind, notBeforeMs }: Retry): Promise<boolean> {
  return (await tx.run(putBack, { id, owner, fence, errorKind, notBeforeMs })).changes > 0;
}

const waitingOfHeld = query<WorkClaim, { waitingJson: string | null }>(({ db, p }) =>
  db
    .selectFrom('workItem')
    .select('waitingJson')
    .where('id', '=', p('id'))
    .where('owner', '=', p('owner'))
    .where('fence', '=', p('fence'))
    .where('state', '=', 'running')
    .forUpdate(),
);

const suspend = query<{ id: string; waitingJson: string; notBeforeMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('workItem')
    .set({
      state: 'accepted',
      owner: '',
      leaseUntilMs: 0,
      attempts: sql<number>`attempts - 1`,
      waitingJson: p('waitingJson'),
      notBeforeMs: p('notBeforeMs'),
    })
    .where('id', '=', p('id')),
);

/** Requeues a work item as waiting, which does not count as an attempt. Returns false like `settleWork`. */
export async function waitWork(tx: Tx, { atMs, wait, ...claim }: WorkClaim & { readonly wait: WorkWait; readonly atMs: number }): Promise<boolean> {
  const { id, owner, fence } = claim;
  const row = await tx.get(waitingOfHeld, { id, owner, fence });
  if (row === undefined) return false;
  const waiting = toWaiting(toWait(row.waitingJson), wait, atMs);
  await tx.run(suspend, { id, waitingJson: JSON.stringify(waiting), notBeforeMs: waiting.endedBy === undefined ? waiting.lookAtMs : atMs });
  return true;
}

export const suspendWork = operation('durable.wait', waitWork, ofOneItem);

const resume = query<{ kind: string; subject: string; atMs: number }>(({ db, sql, p, json }) =>
  db
    .updateTable('workItem')
    .set({ notBeforeMs: p('atMs') })
    .where('waitingJson', 'is not', null)
    .where(json.text('waiting_json', 'kind'), '=', p('kind'))
    .where(json.text('waiting_json', 'subject'), '=', p('subject'))
    .where(sql<boolean>`state = 'accepted'`),
);

export interface Resumed {
  readonly kind: WorkWait['kind'];
  readonly subject: string;
  readonly atMs: number;
}

/** Makes the items due that are waiting for this; returns how many. */
export async function resumeWaiting(tx: Tx, input: Resumed): Promise<number> {
  return (await tx.run(resume, input)).changes;
}

export const resumeWork = operation('durable.resume', resumeWaiting);

const giveUp = query<{ id: string; endedBy: string; atMs: number }>(({ db, sql, p, json }) =>
  db
    .updateTable('workItem')
    .set({ notBeforeMs: p('atMs'), waitingJson: json.set('waiting_json', 'endedBy', p('endedBy')) })
    .where('id', '=', p('id'))
    .where('waitingJson', 'is not', null)
    // Includes items that were just claimed and are about to wait again.
    .where(sql<boolean>`state in ('accepted', 'running')`),
);

/** Marks a waiting item to be given up at its next claim; returns whether there is one. */
export const endWaitingWork = operation(
  'durable.endWaiting',
  async (tx, input: { readonly id: string; readonly endedBy: EndOfWait; readonly atMs: number }): Promise<boolean> =>
    (await tx.run(giveUp, input)).changes > 0,
);

const killOfRoot = query<{ rootRunId: string; atMs: number }>(({ db, sql, p, json }) =>
  db
    .updateTable('workItem')
    .set({ notBeforeMs: p('atMs'), waitingJson: json.set('waiting_json', 'endedBy', sql.lit('killed')) })
    .where('waitingJson', 'is not', null)
    .where(json.text('waiting_json', 'rootRunId'), '=', p('rootRunId'))
    .where(sql<boolean>`${json.text('waiting_json', 'runId')} is null and ${json.text('waiting_json', 'endedBy')} is null`)
    .where(sql<boolean>`state in ('accepted', 'running')`),
);

/** Marks the waiting turns of a root to be given up at their next claim; returns how many were not marked before. */
export const killWaitingWork = operation(
  'durable.killWaiting',
  async (tx, input: { readonly rootRunId: string; readonly atMs: number }): Promise<number> => (await tx.run(killOfRoot, input)).changes,
);

const resumeOf = query<{ agentId: string; atMs: number }>(({ db, sql, p, json }) =>
  db
    .updateTable('workItem')
    .set({ notBeforeMs: p('atMs') })
    .where('waitingJson', 'is not', null)
    .where(sql<boolean>`${json.text('waiting_json', 'kind')} = 'provider'`)
    .where('agentId', '=', p('agentId'))
    .where(sql<boolean>`state = 'accepted'`),
);

/** Makes an agent's items due that are waiting for a provider; returns how many. */
export const resumeAgentWork = operation(
  'durable.resumeAgent',
  async (tx, input: { readonly agentId: string; readonly atMs: number }): Promise<number> => (await tx.run(resumeOf, input)).changes,
);

const resumeOfPrincipal = query<{ principalId: string; atMs: number }>(({ db, sql, p, json }) =>
  db
    .updateTable('workItem')
    .set({ notBeforeMs: p('atMs'), waitingJson: json.set('waiting_json', 'isRevoked', true) })
    .where('waitingJson', 'is not', null)
    .where(sql<boolean>`${json.text('waiting_json', 'kind')} <> 'approval'`)
    .where(sql<boolean>`state = 'accepted'`)
    .where(sql<boolean>`id in (select d.work_id from durable_turn d join turn t on t.id = d.turn_id where t.principal_id = ${p('principalId')})`),
);

/** Makes the items due that were waiting for a principal whose token was revoked, except those with an approval to be dropped; returns how many. */
export const resumePrincipalWork = operation(
  'durable.resumePrincipal',
  async (tx, input: { readonly principalId: string; readonly atMs: number }): Promise<number> => (await tx.run(resumeOfPrincipal, input)).changes,
);

const waitsIn = query<{ ref: string; atMs: number; endedBy: string }>(({ db, sql, p, json }) =>
  db
    .updateTable('workItem')
    .set({ notBeforeMs: p('atMs'), waitingJson: json.set('waiting_json', 'endedBy', p('endedBy')) })
    .where('waitingJson', 'is not', null)
    // Includes items that were just claimed and are queued behind the deletion.
    .where(sql<boolean>`state in ('accepted', 'running')`)
    .where(
      sql<boolean>`(id in (select d.work_id from durable_turn d join turn t on t.id = d.turn_id where t.conversation_ref = ${p('ref')} and t.ended_at_ms is null)
        or (${json.text('waiting_json', 'kind')} = 'conversation' and ${json.text('waiting_json', 'subject')} = ${p('ref')}))`,
    ),
);

/** Marks the waiting work of a conversation to be given up at its next claim, also work that has not started its turn. */
export async function endWaitingIn(tx: Tx, input: { readonly ref: string; readonly endedBy: EndOfWait; readonly atMs: number }): Promise<void> {
  await tx.run(waitsIn, input);
}

const givenUp = query<{ id: string }, { id: string }>(({ db, sql, p, json }) =>
  db
    .selectFrom('workItem')
    .select('id')
    .where('id', '=', p('id'))
    .where(sql<boolean>`${json.text('waiting_json', 'endedBy')} is not null`),
);

/** Returns whether a work item is to be given up at its next claim. The caller holds its row, see `holdsWork`. */
export async function isGivenUp(tx: Tx, id: string): Promise<boolean> {
  return (await tx.get(givenUp, { id })) !== undefined;
}

const waitingOf = query<{ kind: string; keys: string }, { id: string; key: string; waitingJson: string | null }>(({ db, sql, p, json }) =>
  db
    .selectFrom('workItem')
    .select(['id', 'workKey as key', 'waitingJson'])
    .where('kind', '=', p('kind'))
    .where(sql<boolean>`work_key in ${json.texts(p('keys'))}`)
    .where('endedAtMs', 'is', null)
    .where('waitingJson', 'is not', null),
);

/** Returns the waits of items of a kind by key; items that have not waited are left out. */
export async function readWaiting(
  tx: Tx,
  { kind, keys }: { readonly kind: string; readonly keys: readonly string[] },
): Promise<{ readonly id: string; readonly key: string; readonly waiting: Waiting }[]> {
  const rows = keys.length === 0 ? [] : await tx.all(waitingOf, { kind, keys: JSON.stringify(keys) });
  return rows.flatMap(({ id, key, waitingJson }) => {
    const waiting = toWait(waitingJson);
    return waiting === undefined ? [] : [{ id, key, waiting }];
  });
}

export const returnWork = operation('durable.retry', retryWork, ofOneItem);

const dueOf = query<{ kind: string; atMs: number; limit: number }, WorkRow>(({ db, sql, p, json }) =>
  db
    .selectFrom('workItem')
    .select(rowColumns)
    .where('kind', '=', p('kind'))
    .where(sql<boolean>`state = 'accepted'`)
    // Items accepted or requeued in the future date from before a backward clock step, so their times are meaningless.
    .where(sql<boolean>`(not_before_ms <= ${p('atMs')} or coalesce(${json.integer('waiting_json', 'atMs')}, created_at_ms) > ${p('atMs')})`)
    .orderBy('notBeforeMs')
    .orderBy('id')
    .limit(p('limit'))
    .forUpdate()
    .skipLocked(),
);

const lapsedOf = query<{ kind: string; atMs: number; limit: number }, WorkRow>(({ db, sql, p }) =>
  db
    .selectFrom('workItem')
    .select(rowColumns)
    .where('kind', '=', p('kind'))
    .where(sql<boolean>`state = 'running'`)
    .where('leaseUntilMs', '<=', p('atMs'))
    .orderBy('leaseUntilMs')
    .orderBy('id')
    .limit(p('limit'))
    .forUpdate()
    .skipLocked(),
);

const take = query<{ id: string; owner: string; leaseUntilMs: number; attempts: number; resumes: number; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('workItem')
    .set({
      state: 'running',
      owner: p('owner'),
      fence: sql<number>`fence + 1`,
      leaseUntilMs: p('leaseUntilMs'),
      attempts: p('attempts'),
      resumes: p('resumes'),
      startedAtMs: sql<number>`coalesce(started_at_ms, ${p('atMs')})`,
    })
    .where('id', '=', p('id')),
);

interface Claiming {
  readonly owner: string;
  /** Kinds with free slots, and their number. */
  readonly kinds: readonly { readonly kind: string; readonly free: number }[];
  /** Items that this process runs. It keeps them even if their leases lapse while it is stopped, and claims them again only after their end. */
  readonly held: readonly string[];
  readonly leaseUntilMs: number;
  readonly atMs: number;
}

/** Claims due work, abandoned items first. A claim raises the fence, so that earlier owners can no longer write. */
export const claimWork = operation('durable.claim', claimDue, { isolation: 'read committed', orderKey: () => 'durable.claim' });

async function claimDue(tx: Tx, { owner, kinds, held, leaseUntilMs, atMs }: Claiming): Promise<WorkItem[]> {
  const items: WorkItem[] = [];
  const mine = new Set(held);
  const isFree = ({ id }: WorkRow) => !mine.has(id);
  for (const { kind, free } of kinds) {
    const lapsed = await tx.all(lapsedOf, { kind, atMs, limit: free + mine.size });
    const left = lapsed.filter(isFree).slice(0, free);
    // Waiting work is due again when its wait is over, even if its handler has not returned yet.
    const waited = left.length < free ? await tx.all(dueOf, { kind, atMs, limit: free + mine.size }) : [];
    const due = waited.filter(isFree).slice(0, free - left.length);
    for (const row of [...left, ...due]) {
      const resumed = row.state === 'running';
      const attempts = resumed ? row.attempts : row.attempts + 1;
      const resumes = resumed ? row.resumes + 1 : row.resumes;
      await tx.run(take, { id: row.id, owner, leaseUntilMs, attempts, resumes, atMs });
      const { id, key, agentId, createdAtMs } = row;
      const payload = parseJson(row.payloadJson);
      const waiting = toWait(row.waitingJson);
      items.push({
        id,
        owner,
        fence: row.fence + 1,
        kind,
        key,
        agentId,
        payload,
        attempts,
        resumes,
        resumed,
        createdAtMs,
        ...(waiting !== undefined && { waiting }),
      });
    }
  }
  return items;
}

const extend = query<WorkClaim & { leaseUntilMs: number }>(({ db, p }) =>
  db
    .updateTable('workItem')
    .set({ leaseUntilMs: p('leaseUntilMs') })
    .where('id', '=', p('id'))
    .where('owner', '=', p('owner'))
    .where('fence', '=', p('fence'))
    .where('state', '=', 'running'),
);

/** Renews leases; returns the ids of lost claims. */
export const renewWork = operation(
  'durable.renew',
  async (tx, { claims, leaseUntilMs }: { readonly claims: readonly WorkClaim[]; readonly leaseUntilMs: number }): Promise<string[]> => {
    const lost: string[] = [];
    for (const { id, owner, fence } of claims) {
      const { changes } = await tx.run(extend, { id, owner, fence, leaseUntilMs });
      if (changes === 0) lost.push(id);
    }
    return lost;
  },
  { isolation: 'read committed', orderKey: () => 'durable.renew' },
);

const free = query<{ owner: string }>(({ db, sql, p }) =>
  db
    .updateTable('workItem')
    .set({ owner: '', fence: sql<number>`fence + 1`, leaseUntilMs: 0 })
    .where(sql<boolean>`state = 'running'`)
    .where('owner', '<>', p('owner'))
    .where(ofDeadBoot(sql, 'workItem.owner')),
);

/** Frees the work of dead owners, so that the next claim continues it; returns how much there was. */
export const freeWork = operation(
  'durable.free',
  async (tx, input: { readonly owner: string }): Promise<number> => (await tx.run(free, input)).changes,
);

const bringForward = query<{ atMs: number; untilMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('workItem')
    .set({ notBeforeMs: p('atMs') })
    .where(sql<boolean>`state = 'accepted'`)
    .where((is) => is.or([is('notBeforeMs', '>', p('untilMs')), is('createdAtMs', '>', p('atMs'))])),
);

const spread = query<{ atMs: number; stepMs: number }>(({ db, sql, p, json }) =>
  db
    .updateTable('workItem')
    .from(
      db
        .selectFrom('workItem')
        .select([
          'id as waiterId',
          sql<number>`row_number() over (partition by ${json.text('waiting_json', 'subject')} order by not_before_ms, created_at_ms) - 1`.as('place'),
        ])
        .where('waitingJson', 'is not', null)
        .where(sql<boolean>`${json.text('waiting_json', 'kind')} = 'provider' and state = 'accepted'`)
        .as('waiter'),
    )
    .set({ notBeforeMs: sql<number>`${p('atMs')} + waiter.place * ${p('stepMs')}` })
    .where(sql<boolean>`work_item.id = waiter.waiter_id and not_before_ms > ${p('atMs')} + waiter.place * ${p('stepMs')}`),
);

const waitedFor = query<Record<string, never>, { model: string | null }>(({ db, sql, json }) =>
  db
    .selectFrom('workItem')
    .select(json.text('waiting_json', 'subject').as('model'))
    .distinct()
    .where('waitingJson', 'is not', null)
    .where(sql<boolean>`${json.text('waiting_json', 'kind')} = 'provider'`),
);

/**
 * Takes over work at start: frees the work of dead owners, and makes work due that a wrong clock postponed.
 * Items waiting for a model are retried soon, one after the other, because the provider cool-downs ended with the old process.
 */
export const takeOverWork = operation(
  'durable.takeOver',
  async (
    tx,
    { owner, stepMs, ...at }: { readonly owner: string; readonly atMs: number; readonly untilMs: number; readonly stepMs: number },
  ): Promise<{ readonly left: number; readonly moved: number; readonly models: readonly string[] }> => {
    const { changes: left } = await tx.run(free, { owner });
    const { changes: moved } = await tx.run(bringForward, at);
    await tx.run(spread, { atMs: at.atMs, stepMs });
    const models = (await tx.all(waitedFor, {})).flatMap(({ model }) => model ?? []);
    return { left, moved, models };
  },
);

const release = query<WorkClaim>(({ db, sql, p }) =>
  db
    .updateTable('workItem')
    .set({ owner: '', fence: sql<number>`fence + 1`, leaseUntilMs: 0, resumes: sql<number>`resumes - 1` })
    .where('id', '=', p('id'))
    .where('owner', '=', p('owner'))
    .where('fence', '=', p('fence'))
    .where('state', '=', 'running'),
);

/** Releases work at a stop; the next start continues it, which does not count as a resume. */
export const releaseWork = operation(
  'durable.release',
  async (tx, { id, owner, fence }: WorkClaim): Promise<void> => {
    await tx.run(release, { id, owner, fence });
  },
  ofOneItem,
);

/** Takes the kinds as one text, so that one statement reads both indexes of every kind; it runs after each work item. */
const soonestOf = query<{ kinds: string }, { kind: string; waitsAtMs: number | null; lapsesAtMs: number | null }>(({ db, sql, p, json }) =>
  db
    .selectFrom(sql<{ value: string }>`${json.texts(p('kinds'))}`.as('asked'))
    .select([
      sql<string>`asked.value`.as('kind'),
      sql<number | null>`(select min(not_before_ms) from work_item where kind = asked.value and state = 'accepted')`.as('waitsAtMs'),
      sql<number | null>`(select min(lease_until_ms) from work_item where kind = asked.value and state = 'running')`.as('lapsesAtMs'),
    ]),
);

const ofTheFuture = query<{ kinds: string; atMs: number }, { kind: string }>(({ db, sql, p, json }) =>
  db.selectFrom(sql<{ value: string }>`${json.texts(p('kinds'))}`.as('asked')).select(sql<string>`asked.value`.as('kind'))
    .where(sql<boolean>`exists (select 1 from work_item where kind = asked.value and state = 'accepted'
        and coalesce(${json.integer('waiting_json', 'atMs')}, created_at_ms) > ${p('atMs')})`),
);

export interface NextWork {
  /** May be in the past. */
  readonly atMs: number;
  /** Kinds with items to claim by then or already. */
  readonly kinds: readonly string[];
}

/** Returns when the next item of these kinds can be claimed, and of which kinds; undefined when none is queued. */
export const nextWorkAt = operation(
  'durable.nextAt',
  async (tx, { kinds: all, atMs: now }: { readonly kinds: readonly string[]; readonly atMs: number }): Promise<NextWork | undefined> => {
    const kinds = JSON.stringify(all);
    const found: { readonly kind: string; readonly atMs: number }[] = [];
    for (const { kind, waitsAtMs, lapsesAtMs } of await tx.all(soonestOf, { kinds }))
      for (const atMs of [waitsAtMs, lapsesAtMs]) if (atMs !== null) found.push({ kind, atMs });
    if (found.length === 0) return undefined;
    const next = found.reduce((least, { atMs }) => Math.min(least, atMs), Infinity);
    // Only then are there few enough items to check each.
    const future = next > now ? await tx.all(ofTheFuture, { kinds, atMs: now }) : [];
    if (future.length > 0) return { atMs: now, kinds: future.map(({ kind }) => kind) };
    return { atMs: next, kinds: [...new Set(found.filter(({ atMs }) => atMs <= Math.max(next, now)).map(({ kind }) => kind))] };
  },
);

const ended = query<{ beforeMs: number; limit: number }>(({ db, p }) =>
  db
    .deleteFrom('workItem')
    .where('id', 'in', db.selectFrom('workItem').select('id').where('endedAtMs', '<', p('beforeMs')).limit(p('limit')).forUpdate().skipLocked()),
);

/** Deletes some items that ended before a time; returns how many. */
export const pruneWork = operation('durable.prune', async (tx, input: { readonly beforeMs: number; readonly limit: number }): Promise<number> => {
  const { changes } = await tx.run(ended, input);
  return changes;
});

export interface WorkStatus {
  readonly id: string;
  readonly state: WorkState;
  readonly payload: unknown;
  /** Result passed to `settleWork`; null before. */
  readonly result: unknown;
  readonly errorKind: string | null;
}

const status = query<
  { kind: string; key: string },
  { id: string; state: WorkState; payloadJson: string; resultJson: string | null; errorKind: string | null }
>(({ db, p }) =>
  db
    .selectFrom('workItem')
    .select(['id', 'state', 'payloadJson', 'resultJson', 'errorKind'])
    .where('kind', '=', p('kind'))
    .where('workKey', '=', p('key')),
);

/** Returns the status of a work item; undefined when there is none or it was pruned. */
export async function findWork(tx: Tx, input: { readonly kind: string; readonly key: string }): Promise<WorkStatus | undefined> {
  const row = await tx.get(status, input);
  if (row === undefined) return undefined;
  const { payloadJson, resultJson, ...rest } = row;
  return { ...rest, payload: parseJson(payloadJson), result: resultJson === null ? null : parseJson(resultJson) };
}

export const durableOperations = [
  returnWork,
  suspendWork,
  resumeWork,
  endWaitingWork,
  killWaitingWork,
  resumeAgentWork,
  resumePrincipalWork,
  claimWork,
  renewWork,
  takeOverWork,
  freeWork,
  releaseWork,
  nextWorkAt,
  countWaiting,
  pruneWork,
];
