import type { DeliveryState } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { derivedId, idBefore } from '../../../kernel/ids.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { PartRow } from './api.ts';
import { type Admits, removedText } from '../../../channels/people.ts';
import { markRemoved, readRecipients, recipientsIn } from './admission.ts';
import { readKnownEndpoint } from './endpoint-store.ts';
import { admitHeld, countWaitingParts, holdMessage, isQuietHold, maxHeld, quietHold, readHeld, releaseHeld } from './held.ts';

/** Open parts of all instances, and of one conversation; beyond, messages are refused (`queue_full`). */
export const maxOpen = 10_000;
export const maxOpenOfConversation = 1_000;

const columns = [
  'id',
  'opKey',
  'part',
  'parts',
  'digest',
  'instance',
  'channelType',
  'conversationId',
  'threadId',
  'conversationKind',
  'text',
  'subject',
  'replyTo',
  'editsId',
  'buttonsJson',
  'fileJson',
  'state',
  'unsolicited',
  'attempts',
  'repeats',
  'notBeforeMs',
  'expiresAtMs',
  'bootId',
  'platformId',
  'errorKind',
  'error',
  'agentId',
  'principalId',
  'conversationRef',
  'turnId',
  'createdAtMs',
  'ambiguousSinceMs',
  'begunAtMs',
  'endedAtMs',
] as const;

const insert = query<PartRow>(({ db, each }) =>
  db
    .insertInto('outboundMessage')
    .values(each(columns))
    .onConflict((conflict) => conflict.columns(['opKey', 'part']).doNothing()),
);
const countOpen = query<object, { n: number }>(({ db, sql }) =>
  db
    .selectFrom('outboundMessage')
    .select(sql<number>`count(*)`.as('n'))
    .where(sql<boolean>`state in ('pending', 'sending')`),
);

const countOpenThere = query<{ instance: string; conversationId: string }, { n: number }>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(sql<number>`count(*)`.as('n'))
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where(sql<boolean>`state in ('pending', 'sending')`),
);

/** Reports a full queue once a day for each conversation. */
function alertOfFull({ instance, channelType, conversationId, agentId, principalId, createdAtMs }: PartRow, error: string): InboxMessage {
  const opKey = `delivery:${instance}:${conversationId}:full:${Math.floor(createdAtMs / dayMs)}`;
  return {
    id: derivedId('in', opKey),
    opKey,
    digest: 'full',
    source: 'channel',
    agentId,
    conversationRef: null,
    principalId,
    level: 'alert',
    text: `Messages to ${conversationId} (${channelType}, "${instance}") are not sent: ${error}. Next step: \`gatehouse channels deliveries --state rejected\` lists them.`,
    atMs: createdAtMs,
  };
}

const dayMs = 24 * 60 * 60_000;

/** Stores the parts of a message for sending, in the transaction of what it reports. A repeat under the same key stores nothing; returns whether it is new. */
export async function addParts(tx: Tx, parts: readonly PartRow[]): Promise<boolean> {
  const [first] = parts;
  if (first === undefined) return false;
  const { instance, conversationId } = first;
  const open = (await tx.get(countOpen, {}))?.n ?? 0;
  const openThere = (await tx.get(countOpenThere, { instance, conversationId }))?.n ?? 0;
  const admitted = await admitHeld(tx, parts);
  const isFull = open >= maxOpen || openThere >= maxOpenOfConversation || admitted === undefined;
  const error =
    open >= maxOpen
      ? `More than ${maxOpen} messages wait to be sent`
      : openThere >= maxOpenOfConversation
        ? `More than ${maxOpenOfConversation} messages wait to be sent to the conversation`
        : `More than ${maxHeld} messages wait for the end of the quiet hours of the conversation`;
  const full = { state: 'rejected', errorKind: 'queue_full', error } as const;
  let added = 0;
  for (const part of admitted ?? parts) added += (await tx.run(insert, isFull ? { ...part, ...full, endedAtMs: part.createdAtMs } : part)).changes;
  if (isFull && added > 0) await tx.call({ operation: 'inbox.deliver', input: alertOfFull(first, error) });
  return added > 0;
}

/** `addParts` as an operation. */
export const enqueueParts = operation('delivery.enqueue', async (tx, { parts }: { readonly parts: readonly PartRow[] }): Promise<void> => {
  await addParts(tx, parts);
});

/** Stores that something was delivered to the built-in channel, in the transaction that delivered it: a part that was accepted. */
export async function addDelivered(tx: Tx, part: PartRow): Promise<void> {
  await tx.run(insert, part);
}

const dropKey = query<{ opKey: string }>(({ db, p }) => db.deleteFrom('outboundMessage').where('opKey', '=', p('opKey')));

/** Removes what was stored of such a delivery, as it is withdrawn. */
export async function removeDelivered(tx: Tx, input: { readonly opKey: string }): Promise<void> {
  await tx.run(dropKey, input);
}

const byId = query<{ id: string }, PartRow>(({ db, p }) => db.selectFrom('outboundMessage').select(columns).where('id', '=', p('id')).forUpdate());
/** The first open part of a conversation: what is needed to know when it is due. */
export type PartHead = Pick<
  PartRow,
  'id' | 'instance' | 'conversationId' | 'threadId' | 'state' | 'notBeforeMs' | 'agentId' | 'unsolicited' | 'expiresAtMs'
>;

/** How often a part that may have been sent is sent again, where the operator chose that. */
const maxRepeats = 1;
const repeatAfterMs = 5_000;

/** Conversations that are looked at together. */
export const maxHeads = 256;
const headColumns = ['id', 'instance', 'conversationId', 'threadId', 'state', 'notBeforeMs', 'agentId', 'unsolicited', 'expiresAtMs'] as const;

const heads = query<{ instance: string }, PartHead>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(headColumns)
    .where(
      sql<boolean>`id in (select min(id) from outbound_message where instance = ${p('instance')} and state in ('pending', 'sending')
        group by conversation_id, thread_id)`,
    )
    // A part that is not due keeps no other one from being read.
    .orderBy('notBeforeMs')
    .orderBy('id')
    .limit(maxHeads),
);

/** Returns the oldest open part of each conversation of an instance, those that are due first. */
export const readHeads = operation('delivery.heads', (tx, input: { readonly instance: string }): Promise<PartHead[]> => tx.all(heads, input));

const headOfLane = query<{ instance: string; conversationId: string; threadId: string | null }, PartHead>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(headColumns)
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where(sql<boolean>`thread_id is not distinct from ${p('threadId', 'text')}`)
    .where(sql<boolean>`state in ('pending', 'sending')`)
    .orderBy('id')
    .limit(1),
);

/** Returns the oldest open part of one conversation. */
export const readHead = operation(
  'delivery.head',
  (tx, input: { readonly instance: string; readonly conversationId: string; readonly threadId: string | null }): Promise<PartHead | undefined> =>
    tx.get(headOfLane, input),
);

const begin = query<{ id: string; bootId: string; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('outboundMessage')
    .set({ state: 'sending', bootId: p('bootId'), begunAtMs: p('atMs'), attempts: sql<number>`attempts + 1` })
    .where('id', '=', p('id'))
    .where('state', '=', 'pending'),
);

export interface SendBegin {
  readonly id: string;
  /** Platform of the instance now. */
  readonly channelType: string;
  readonly bootId: string;
  readonly atMs: number;
  /** Time by which the part is too old. */
  readonly ageNowMs: number;
  /** People who may write directly over the instance; nobody is refused without it. */
  readonly admits?: Admits | undefined;
  /** End of the quiet hours that hold it now. */
  readonly quietUntilMs?: number | undefined;
}

/** A part that is claimed: with the ids of those whom it is for, empty when they are not known. */
export type ClaimedPart = PartRow & { readonly recipients: readonly string[] };

/**
 * Claims a part, before anything of it leaves. Returns what it is then: `sending`, or ended because it is too old or for another platform;
 * undefined when it was not pending, or is held now.
 */
export async function beginSend(
  tx: Tx,
  { id, channelType, bootId, atMs, ageNowMs, admits, quietUntilMs }: SendBegin,
): Promise<ClaimedPart | undefined> {
  const row = await tx.get(byId, { id });
  if (row?.state !== 'pending') return undefined;
  const isForOther = row.channelType !== channelType;
  const isLate = row.expiresAtMs <= ageNowMs;
  if (!isForOther && !isLate && quietUntilMs !== undefined && (await holdMessage(tx, row, atMs, quietUntilMs))) return undefined;
  // The code of a request goes to somebody who is not approved yet.
  const isChecked = admits !== undefined && row.conversationKind === 'direct' && !row.opKey.startsWith('pairing:');
  const recipients = isForOther || isLate || !isChecked ? [] : await recipientsIn(tx, row, admits);
  if (!isForOther && !isLate && recipients !== undefined) {
    const { changes } = await tx.run(begin, { id, bootId, atMs });
    return changes > 0 ? { ...row, state: 'sending', recipients } : undefined;
  }
  if (recipients === undefined) await markRemoved(tx, row, atMs);
  const state = row.ambiguousSinceMs !== null || row.repeats > 0 ? 'unknown' : isForOther || !isLate ? 'rejected' : 'expired';
  const error = isForOther
    ? `The channel is of the platform ${channelType} now`
    : recipients === undefined
      ? removedText
      : (row.error ?? 'It could not be sent in time');
  const errorKind = isForOther ? 'replaced' : recipients === undefined ? 'not_allowed' : (row.errorKind ?? 'expired');
  await endMessage(tx, row, { state, errorKind, error, atMs });
  return { ...row, state, error, recipients: [] };
}

const latePending = query<{ ageNowMs: number; limit: number }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select('id')
    .where(sql<boolean>`state in ('pending', 'sending')`)
    .where('state', '=', 'pending')
    .where('expiresAtMs', '<=', p('ageNowMs'))
    .orderBy('id')
    .limit(p('limit')),
);
const lateHeld = query<{ ageNowMs: number; limit: number }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select('id')
    .where(sql<boolean>`state = 'held'`)
    .where('errorKind', '=', quietHold)
    .where('expiresAtMs', '<=', p('ageNowMs'))
    .orderBy('id')
    .limit(p('limit')),
);

const lateSending = query<{ ageNowMs: number; limit: number }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select('id')
    .where(sql<boolean>`state in ('pending', 'sending')`)
    .where('state', '=', 'sending')
    .where('expiresAtMs', '<=', p('ageNowMs'))
    .orderBy('id')
    .limit(p('limit')),
);
/** No send takes that long: one that is that late was left by a process that ended, over a channel that has not connected since. */
const longestSendMs = 60 * 60_000;

export interface LateParts {
  /** Time by which parts are too old. */
  readonly ageNowMs: number;
  readonly atMs: number;
  readonly limit: number;
}

/**
 * Ends some messages that are too old, whatever their channel does: one that is disabled, removed or refused never claims them, and they would
 * count as waiting forever. Returns their first parts, as they are then.
 */
export async function endLateParts(tx: Tx, { ageNowMs, atMs, limit }: LateParts): Promise<PartRow[]> {
  const late = [
    ...(await tx.all(latePending, { ageNowMs, limit })),
    ...(await tx.all(lateHeld, { ageNowMs, limit })),
    ...(await tx.all(lateSending, { ageNowMs: ageNowMs - longestSendMs, limit })),
  ];
  const ended: PartRow[] = [];
  for (const { id } of late) {
    const row = await tx.get(byId, { id });
    const wasSending = row?.state === 'sending' && row.expiresAtMs <= ageNowMs - longestSendMs;
    // An earlier part of its message has ended it, or a sender has claimed it.
    if (row === undefined || (row.state !== 'pending' && !isQuietHold(row) && !wasSending)) continue;
    const state = wasSending || row.ambiguousSinceMs !== null || row.repeats > 0 ? 'unknown' : 'expired';
    const errorKind = wasSending ? 'interrupted' : row.state === 'held' ? 'expired' : (row.errorKind ?? 'expired');
    const error = wasSending ? interrupted : row.state === 'held' || row.error === null ? 'It could not be sent in time' : row.error;
    await endMessage(tx, row, { state, errorKind, error, atMs });
    ended.push({ ...row, state, errorKind, error });
  }
  return ended;
}

const setEnd = query<{
  id: string;
  state: DeliveryState;
  platformId: string | null;
  errorKind: string | null;
  error: string | null;
  notBeforeMs: number;
  endedAtMs: number | null;
}>(({ db, p }) =>
  db
    .updateTable('outboundMessage')
    .set({
      state: p('state'),
      platformId: p('platformId'),
      errorKind: p('errorKind'),
      error: p('error'),
      notBeforeMs: p('notBeforeMs'),
      endedAtMs: p('endedAtMs'),
      bootId: null,
    })
    .where('id', '=', p('id')),
);
const setRest = query<{ opKey: string; part: number; from: DeliveryState; to: DeliveryState; endedAtMs: number | null }>(({ db, p }) =>
  db
    .updateTable('outboundMessage')
    .set({ state: p('to'), endedAtMs: p('endedAtMs') })
    .where('opKey', '=', p('opKey'))
    .where('part', '>', p('part'))
    .where('state', '=', p('from')),
);

interface PartEnd {
  readonly state: DeliveryState;
  readonly platformId?: string | undefined;
  readonly errorKind?: string | null | undefined;
  readonly error?: string | null | undefined;
  readonly atMs: number;
}

/** Ends a part; the later parts of its message wait for a decision about it, or end with it. */
async function endMessage(tx: Tx, row: PartRow, { state, platformId, errorKind, error, atMs }: PartEnd): Promise<void> {
  const end = { platformId: platformId ?? row.platformId, errorKind: errorKind ?? null, error: error ?? null };
  await tx.run(setEnd, { id: row.id, state, ...end, notBeforeMs: row.notBeforeMs, endedAtMs: atMs });
  const { opKey, part } = row;
  if (state === 'accepted') await tx.run(setRest, { opKey, part, from: 'held', to: 'pending', endedAtMs: null });
  else if (state === 'unknown') await tx.run(setRest, { opKey, part, from: 'pending', to: 'held', endedAtMs: null });
  else for (const from of ['pending', 'held'] as const) await tx.run(setRest, { opKey, part, from, to: state, endedAtMs: atMs });
}

export interface SendEnd {
  readonly id: string;
  readonly bootId: string;
  readonly is: 'accepted' | 'rejected' | 'unknown' | 'retry';
  readonly platformId?: string | undefined;
  readonly errorKind?: string | null | undefined;
  readonly error?: string | null | undefined;
  /** Time of the next try, for a retry. */
  readonly notBeforeMs?: number | undefined;
  /** Time of the first try that may have arrived, for a retry. */
  readonly ambiguousSinceMs?: number | null | undefined;
  /** Whether the whole instance failed, so that the try does not count, for a retry. */
  readonly isFree?: boolean | undefined;
  /** Whether a part that may have been sent is sent once more. */
  readonly repeatUnknown?: boolean | undefined;
  readonly atMs: number;
}

const setRepeat = query<{ id: string; error: string | null; notBeforeMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('outboundMessage')
    .set({
      state: 'pending',
      repeats: sql<number>`repeats + 1`,
      attempts: 0,
      errorKind: 'repeat',
      error: p('error'),
      notBeforeMs: p('notBeforeMs'),
      ambiguousSinceMs: null,
      bootId: null,
    })
    .where('id', '=', p('id')),
);

/** Stores what became of a send, and returns the part with its state after it; undefined when this process is not the one that sends it. */
export async function finishSend(tx: Tx, end: SendEnd): Promise<PartRow | undefined> {
  const {
    id,
    bootId,
    atMs,
    repeatUnknown = false,
    errorKind = null,
    error = null,
    notBeforeMs = atMs,
    ambiguousSinceMs = null,
    isFree = false,
  } = end;
  const row = await tx.get(byId, { id });
  if (row?.state !== 'sending' || row.bootId !== bootId) return undefined;
  // A refusal says nothing of the tries before.
  const is = end.is === 'rejected' && row.repeats > 0 ? 'unknown' : end.is;
  if (is === 'unknown' && repeatUnknown && row.repeats < maxRepeats) {
    await tx.run(setRepeat, { id, error, notBeforeMs: atMs + repeatAfterMs });
    return { ...row, state: 'pending' };
  }
  if (is !== 'retry') await endMessage(tx, row, { state: is, platformId: end.platformId, errorKind, error, atMs });
  else await tx.run(setRetry, { id, errorKind, error, notBeforeMs, ambiguousSinceMs, uncounted: isFree ? 1 : 0 });
  return { ...row, state: is === 'retry' ? 'pending' : is };
}

const setRetry = query<{
  id: string;
  errorKind: string | null;
  error: string | null;
  notBeforeMs: number;
  ambiguousSinceMs: number | null;
  uncounted: number;
}>(({ db, sql, p }) =>
  db
    .updateTable('outboundMessage')
    .set({
      state: 'pending',
      errorKind: p('errorKind'),
      error: p('error'),
      notBeforeMs: p('notBeforeMs'),
      ambiguousSinceMs: p('ambiguousSinceMs'),
      attempts: sql<number>`attempts - ${p('uncounted')}`,
      bootId: null,
    })
    .where('id', '=', p('id')),
);

const leftSending = query<{ instance: string }, PartRow>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(columns)
    .where('instance', '=', p('instance'))
    .where(sql<boolean>`state in ('pending', 'sending')`)
    .where('state', '=', 'sending')
    .orderBy('id'),
);

const setOpen = query<{ id: string; ambiguousSinceMs: number; atMs: number }>(({ db, p }) =>
  db
    .updateTable('outboundMessage')
    .set({ state: 'pending', ambiguousSinceMs: p('ambiguousSinceMs'), notBeforeMs: p('atMs'), bootId: null })
    .where('id', '=', p('id')),
);

export interface LeftSends {
  readonly instance: string;
  /** Whether the platform knows keys again or can be asked: the sender finds out what became of them. */
  readonly canResolve: boolean;
  /** Whether an edit can be repeated: one that was interrupted is. */
  readonly canEdit: boolean;
  /** Whether a part that may have been sent is sent once more. */
  readonly repeatUnknown: boolean;
  readonly atMs: number;
}

const setAgain = query<{ id: string; atMs: number }>(({ db, p }) =>
  db
    .updateTable('outboundMessage')
    .set({ state: 'pending', notBeforeMs: p('atMs'), bootId: null })
    .where('id', '=', p('id')),
);
const clearEdit = query<{ id: string; bootId: string }>(({ db, p }) =>
  db.updateTable('outboundMessage').set({ editsId: null }).where('id', '=', p('id')).where('state', '=', 'sending').where('bootId', '=', p('bootId')),
);

/** Notes that a part is sent as a message instead of editing a preview, before anything of it leaves; false when another process sends it. */
export const dropEdit = operation(
  'delivery.dropEdit',
  async (tx, input: { readonly id: string; readonly bootId: string }): Promise<boolean> => (await tx.run(clearEdit, input)).changes > 0,
);

const interrupted = 'The daemon ended before the platform confirmed it';

/**
 * Marks what was being sent when an earlier process ended, or an earlier connection of this one whose outcome could not be stored: it may have
 * been sent. Nothing of the instance may be under way. Returns the parts that a person has to decide about.
 */
export async function markLeft(tx: Tx, { instance, canResolve, canEdit, repeatUnknown, atMs }: LeftSends): Promise<PartRow[]> {
  const rows = await tx.all(leftSending, { instance });
  const parked: PartRow[] = [];
  for (const row of rows) {
    if (row.editsId !== null && canEdit) await tx.run(setAgain, { id: row.id, atMs });
    else if (canResolve) await tx.run(setOpen, { id: row.id, ambiguousSinceMs: row.ambiguousSinceMs ?? row.begunAtMs ?? atMs, atMs });
    else if (repeatUnknown && row.repeats < maxRepeats) await tx.run(setRepeat, { id: row.id, error: interrupted, notBeforeMs: atMs });
    else {
      await endMessage(tx, row, { state: 'unknown', errorKind: 'interrupted', error: interrupted, atMs });
      parked.push(row);
    }
  }
  return parked;
}

/** Counts the parts of some agents, null: of all, by state and platform. */
export const countStages = operation(
  'delivery.stages',
  async (tx, { agentIds }: Of): Promise<readonly { readonly state: DeliveryState; readonly channelType: string; readonly n: number }[]> => {
    if (agentIds?.length === 0) return [];
    return tx.build((db, sql) => {
      let from = db.selectFrom('outboundMessage');
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      return from.select(['state', 'channelType', sql<number>`count(*)`.as('n')]).groupBy(['state', 'channelType']);
    });
  },
);

interface Of {
  /** Null: all. */
  readonly agentIds: readonly string[] | null;
}

interface Page extends Of {
  readonly state: DeliveryState | null;
  readonly instance: string | null;
  readonly offset: number;
  readonly limit: number;
}

/** Returns parts, newest first, with their number. */
export const listParts = operation(
  'delivery.list',
  async (tx, { agentIds, state, instance, offset, limit }: Page): Promise<{ rows: PartRow[]; total: number }> => {
    if (agentIds?.length === 0) return { rows: [], total: 0 };
    const rows = await tx.build<PartRow>((db) => {
      let from = db.selectFrom('outboundMessage');
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (state !== null) from = from.where('state', '=', state);
      if (instance !== null) from = from.where('instance', '=', instance);
      return from.select(columns).orderBy('id', 'desc').offset(offset).limit(limit);
    });
    const [count] = await tx.build<{ n: number }>((db, sql) => {
      let from = db.selectFrom('outboundMessage').select(sql<number>`count(*)`.as('n'));
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (state !== null) from = from.where('state', '=', state);
      if (instance !== null) from = from.where('instance', '=', instance);
      return from;
    });
    return { rows, total: count?.n ?? 0 };
  },
);

export interface Decision extends Of {
  readonly id: string;
  readonly as: 'resend' | 'accepted' | 'rejected';
  readonly expiresAtMs: number;
  readonly audit: AuditRow;
  readonly atMs: number;
}

const reopen = query<{ id: string; atMs: number; expiresAtMs: number }>(({ db, p }) =>
  db
    .updateTable('outboundMessage')
    .set({
      state: 'pending',
      // Somebody asks for it now.
      unsolicited: null,
      attempts: 0,
      notBeforeMs: p('atMs'),
      expiresAtMs: p('expiresAtMs'),
      ambiguousSinceMs: null,
      endedAtMs: null,
      bootId: null,
    })
    .where('id', '=', p('id')),
);
const extend = query<{ opKey: string; part: number; expiresAtMs: number }>(({ db, p }) =>
  db
    .updateTable('outboundMessage')
    .set({ expiresAtMs: p('expiresAtMs') })
    .where('opKey', '=', p('opKey'))
    .where('part', '>', p('part')),
);

const decidable: Readonly<Record<Decision['as'], readonly DeliveryState[]>> = {
  resend: ['unknown', 'rejected', 'expired'],
  accepted: ['unknown'],
  rejected: ['unknown'],
};

/** Carries out what an operator decided about a part. */
export const decidePart = operation('delivery.decide', async (tx, { id, as, agentIds, expiresAtMs, audit, atMs }: Decision): Promise<PartRow> => {
  const row = await tx.get(byId, { id });
  if (row === undefined || agentIds?.includes(row.agentId) === false) throw new AppError('not_found', 'Message not found', { param: 'deliveryId' });
  if (!decidable[as].includes(row.state))
    throw new AppError('precondition_failed', `The message is ${row.state}: expected ${decidable[as].join(' or ')}`, { param: 'deliveryId' });
  const { opKey, part } = row;
  await tx.run(extend, { opKey, part, expiresAtMs });
  if (as === 'resend') {
    await tx.run(reopen, { id, atMs, expiresAtMs });
    for (const from of ['held', 'rejected', 'expired'] as const) await tx.run(setRest, { opKey, part, from, to: 'pending', endedAtMs: null });
  } else await endMessage(tx, row, { state: as, errorKind: row.errorKind ?? undefined, error: row.error ?? undefined, atMs });
  await appendAudit(tx, audit);
  const decided = await tx.get(byId, { id });
  if (decided === undefined) throw new Error('the message is gone');
  return decided;
});

const old = query<{ beforeId: string; limit: number }, { id: string; opKey: string }>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(['id', 'opKey'])
    .where('id', '<', p('beforeId'))
    .where(sql<boolean>`state not in ('pending', 'sending')`)
    .orderBy('id')
    .limit(p('limit')),
);

export interface Due {
  readonly beforeMs: number;
  readonly limit: number;
}

/** Deletes some ended parts, after `forgetting` got their keys; returns how many. Part of `pruneChannelSends`. */
export async function pruneParts(tx: Tx, { beforeMs, limit }: Due, forgetting: (opKeys: readonly string[]) => Promise<void>): Promise<number> {
  const rows = await tx.all(old, { beforeId: idBefore('ob', beforeMs), limit });
  if (rows.length === 0) return 0;
  await forgetting(rows.map(({ opKey }) => opKey));
  const ids = rows.map(({ id }) => id);
  await tx.build((db) => db.deleteFrom('outboundMessage').where('id', 'in', ids));
  return ids.length;
}

const dropPending = query<{ opKey: string }>(({ db, p }) =>
  db.deleteFrom('outboundMessage').where('opKey', '=', p('opKey')).where('state', 'in', ['pending', 'held']),
);
const anyOf = query<{ opKey: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('outboundMessage').select('id').where('opKey', '=', p('opKey')).limit(1),
);

/** Withdraws what was not sent yet of a message; returns whether anything of it may have been sent. */
export async function withdrawParts(tx: Tx, message: { readonly opKey: string }): Promise<boolean> {
  await tx.run(dropPending, message);
  return (await tx.get(anyOf, message)) !== undefined;
}

const oldest = query<object, { atMs: number }>(({ db }) => db.selectFrom('outboundMessage').select('createdAtMs as atMs').orderBy('id').limit(1));

/** Returns the time of the oldest part that is kept. */
export const oldestPart = operation('delivery.oldest', async (tx): Promise<number | undefined> => (await tx.get(oldest, {}))?.atMs);

const forget = query<{ conversationRef: string }>(({ db, p }) =>
  db.deleteFrom('outboundMessage').where('conversationRef', '=', p('conversationRef')),
);

const forgetPending = query<{ conversationRef: string }>(({ db, p }) =>
  db
    .deleteFrom('outboundMessage')
    .where('conversationRef', '=', p('conversationRef'))
    .where('turnId', 'is not', null)
    .where('state', 'in', ['pending', 'held']),
);

/** Deletes the answers of a conversation that were not sent yet, as it is being reset. */
export async function forgetPendingParts(tx: Tx, input: { readonly conversationRef: string }): Promise<void> {
  await tx.run(forgetPending, input);
}

/** Deletes what was sent and waits to be sent for a conversation that is being deleted. */
export async function forgetParts(tx: Tx, input: { readonly conversationRef: string }): Promise<void> {
  await tx.run(forget, input);
}

export const deliveryOperations = [
  enqueueParts,
  readRecipients,
  readKnownEndpoint,
  readHeads,
  readHead,
  readHeld,
  countWaitingParts,
  releaseHeld,
  countStages,
  listParts,
  decidePart,
  dropEdit,
  oldestPart,
];
