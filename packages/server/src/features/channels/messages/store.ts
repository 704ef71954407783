import { AppError } from '../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { idBefore } from '../../../kernel/ids.ts';
import type { Destination } from '../delivery/api.ts';
import type { ChannelVerdict } from '@gatehouse/contract';
import { principalOfSender } from '../../../channels/sender-principal.ts';

/** Kind of the durable work that answers a message; its key is the id of the message. */
export const messageKind = 'channel';
/** Kind of the work that carries out a command. */
export const commandKind = 'channel_command';
/** Pending pairing requests of an instance. */
const maxRequests = 3;

export interface MessageRow extends Destination {
  /** `cm_<uuid>` */
  readonly id: string;
  readonly eventKey: string | null;
  readonly senderId: string;
  readonly senderName: string;
  readonly text: string;
  readonly platformId: string | null;
  readonly subject: string | null;
  readonly attachmentsJson: string | null;
  readonly isForwarded: 0 | 1;
  readonly isBot: 0 | 1;
  readonly verdict: ChannelVerdict;
  readonly agentId: string;
  readonly conversationRef: string | null;
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

export interface PairingRow {
  /** `pr_<uuid>` */
  readonly id: string;
  readonly instance: string;
  readonly channelType: string;
  readonly senderId: string;
  readonly senderName: string;
  /** Conversation of the request, in which its approval is reported. */
  readonly conversationId: string;
  readonly codeMac: string | null;
  readonly person: string | null;
  readonly principalId: string | null;
  readonly requestedAtMs: number;
  readonly expiresAtMs: number | null;
}

const messageColumns = [
  'id',
  'instance',
  'channelType',
  'eventKey',
  'conversationId',
  'threadId',
  'conversationKind',
  'senderId',
  'senderName',
  'text',
  'platformId',
  'subject',
  'attachmentsJson',
  'isForwarded',
  'isBot',
  'verdict',
  'agentId',
  'conversationRef',
  'sentAtMs',
  'receivedAtMs',
] as const;

const insert = query<MessageRow>(({ db, each }) =>
  db
    .insertInto('channelMessage')
    .values(each(messageColumns))
    .onConflict((conflict) => conflict.doNothing()),
);

/** Adds a message; false when the platform delivered it before. */
export async function addMessage(tx: Tx, row: MessageRow): Promise<boolean> {
  return (await tx.run(insert, row)).changes > 0;
}

const filesOf = query<{ id: string }, { filesJson: string | null }>(({ db, p }) =>
  db.selectFrom('channelMessage').select('filesJson').where('id', '=', p('id')),
);

/** Returns the fetched files of a message; undefined before they were fetched. */
export const readFiles = operation(
  'channels.files',
  async (tx, input: { readonly id: string }): Promise<string | undefined> => (await tx.get(filesOf, input))?.filesJson ?? undefined,
);

const putFiles = query<{ id: string; filesJson: string }>(({ db, p }) =>
  db
    .updateTable('channelMessage')
    .set({ filesJson: p('filesJson') })
    .where('id', '=', p('id')),
);

/** Stores the fetched files of a message. */
export const saveFiles = operation('channels.saveFiles', async (tx, input: { readonly id: string; readonly filesJson: string }): Promise<void> => {
  await tx.run(putFiles, input);
});

const previewOf = query<{ id: string }, { previewId: string | null }>(({ db, p }) =>
  db.selectFrom('channelMessage').select('previewId').where('id', '=', p('id')),
);

/** Returns the preview of the answer to a message: empty when it may have been sent, undefined when there is none. */
export const readPreview = operation(
  'channels.preview',
  async (tx, input: { readonly id: string }): Promise<string | undefined> => (await tx.get(previewOf, input))?.previewId ?? undefined,
);

const putPreview = query<{ id: string; previewId: string }>(({ db, p }) =>
  db
    .updateTable('channelMessage')
    .set({ previewId: p('previewId') })
    .where('id', '=', p('id')),
);

/** Stores the preview of the answer to a message. */
export const savePreview = operation(
  'channels.savePreview',
  async (tx, input: { readonly id: string; readonly previewId: string }): Promise<void> => {
    await tx.run(putPreview, input);
  },
);

/** A new text of an earlier message; empty when it was deleted. */
export interface MessageChange {
  readonly instance: string;
  readonly conversationId: string;
  readonly platformId: string;
  readonly senderId: string;
  readonly text: string;
  readonly atMs: number;
}

const sameMessage = query<Omit<MessageChange, 'text' | 'atMs'>, ChangedMessage>(({ db, p }) =>
  db
    .selectFrom('channelMessage')
    .select(['id', 'verdict', 'text', 'conversationRef'])
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where('platformId', '=', p('platformId'))
    .where('senderId', '=', p('senderId'))
    .orderBy('id', 'desc')
    .limit(1),
);

interface ChangedMessage {
  readonly id: string;
  readonly verdict: ChannelVerdict;
  readonly text: string;
  readonly conversationRef: string | null;
}

/** Returns the message that a change is about: nobody changes what somebody else wrote. */
export function findChanged(tx: Tx, { instance, conversationId, platformId, senderId }: MessageChange): Promise<ChangedMessage | undefined> {
  return tx.get(sameMessage, { instance, conversationId, platformId, senderId });
}

const setText = query<{ id: string; text: string }>(({ db, p }) =>
  db
    .updateTable('channelMessage')
    .set({ text: p('text') })
    .where('id', '=', p('id')),
);

/** Replaces the text of a message that no turn has seen. */
export async function replaceText(tx: Tx, input: { readonly id: string; readonly text: string }): Promise<void> {
  await tx.run(setText, input);
}

const setChange = query<{ id: string; changedText: string | null }>(({ db, p }) =>
  db
    .updateTable('channelMessage')
    .set({ changedText: p('changedText') })
    .where('id', '=', p('id')),
);

/** Keeps a change of a message that a turn has seen, for the next turn; null when it reads as before. */
export async function keepChange(tx: Tx, { id, text }: { readonly id: string; readonly text: string | null }): Promise<void> {
  await tx.run(setChange, { id, changedText: text });
}

type Author = Pick<MessageRow, 'conversationRef' | 'senderId'>;

const changed = query<Author, SeenChange>(({ db, sql, p }) =>
  db
    .selectFrom('channelMessage')
    .select(['id', 'text as was', sql<string>`changed_text`.as('now')])
    .where('conversationRef', '=', p('conversationRef'))
    .where('changedText', 'is not', null)
    .where('senderId', '=', p('senderId'))
    // An inline bot may change what it wrote in the name of a person.
    .where('isForwarded', '=', 0)
    .where('verdict', '=', 'turn')
    .orderBy('id')
    .limit(10),
);

/** A change that is reported to a turn; `now` is empty for a deleted message. */
export interface SeenChange {
  readonly id: string;
  readonly was: string;
  readonly now: string;
}

/** Returns what the author of a message has changed since: in a group the words of one person never come with those of another. */
export async function readChanges(tx: Tx, { conversationRef, senderId }: Author): Promise<SeenChange[]> {
  return conversationRef === null ? [] : tx.all(changed, { conversationRef, senderId });
}

/** Marks changes that are reported to a turn. */
export async function markReported(tx: Tx, changes: readonly SeenChange[]): Promise<void> {
  for (const { id, now, was } of changes) {
    await tx.run(setChange, { id, changedText: null });
    await tx.run(setText, { id, text: now === '' ? was : now });
  }
}

const cursorOf = query<{ instance: string }, { cursor: string }>(({ db, p }) =>
  db.selectFrom('channelCursor').select('cursor').where('instance', '=', p('instance')),
);

/** Returns how far an instance has received; undefined before its first commit. */
export const readCursor = operation(
  'channels.cursor',
  async (tx, input: { readonly instance: string }): Promise<string | undefined> => (await tx.get(cursorOf, input))?.cursor,
);

const putCursor = query<{ instance: string; cursor: string; atMs: number }>(({ db, p }) =>
  db
    .insertInto('channelCursor')
    .values({ instance: p('instance'), cursor: p('cursor'), atMs: p('atMs') })
    .onConflict((conflict) => conflict.column('instance').doUpdateSet({ cursor: p('cursor'), atMs: p('atMs') })),
);

/** Stores how far an instance has received, in the commit of what it received. */
export async function saveCursor(tx: Tx, input: { readonly instance: string; readonly cursor: string; readonly atMs: number }): Promise<void> {
  await tx.run(putCursor, input);
}

const byId = query<{ id: string }, MessageRow>(({ db, p }) => db.selectFrom('channelMessage').select(messageColumns).where('id', '=', p('id')));

/** Returns a message. */
export const findMessage = operation('channels.message', (tx, input: { readonly id: string }) => tx.get(byId, input));

const begin = query<{ id: string; from: ChannelVerdict; agentId: string; conversationRef: string | null }>(({ db, p }) =>
  db
    .updateTable('channelMessage')
    .set({ verdict: 'turn', agentId: p('agentId'), conversationRef: p('conversationRef') })
    .where('id', '=', p('id'))
    .where('verdict', '=', p('from'))
    // Otherwise it was deleted.
    .where('changedText', 'is', null),
);

/** Marks a message without a turn as one with a turn; false when that has changed meanwhile, or its author deleted it. */
export async function markTurn(tx: Tx, { id, agentId, conversationRef }: MessageRow): Promise<boolean> {
  for (const from of ['suspended', 'full'] as const) if ((await tx.run(begin, { id, from, agentId, conversationRef })).changes > 0) return true;
  return false;
}

const full = query<{ id: string }>(({ db, p }) => db.updateTable('channelMessage').set({ verdict: 'full' }).where('id', '=', p('id')));

/** Notes that no turn was started, as too many wait. */
export async function markFull(tx: Tx, input: { readonly id: string }): Promise<void> {
  await tx.run(full, input);
}

const pairingColumns = [
  'id',
  'instance',
  'channelType',
  'senderId',
  'senderName',
  'conversationId',
  'codeMac',
  'person',
  'principalId',
  'requestedAtMs',
  'expiresAtMs',
] as const;

type Paired = Pick<PairingRow, 'instance' | 'channelType' | 'senderId'>;

const pairingOf = query<Paired, PairingRow>(({ db, p }) =>
  db
    .selectFrom('channelPairing')
    .select(pairingColumns)
    .where('instance', '=', p('instance'))
    .where('senderId', '=', p('senderId'))
    .where('channelType', '=', p('channelType')),
);

const pairingsOf = query<{ instance: string; channelType: string; senderIds: string }, PairingRow>(({ db, json, p }) =>
  db
    .selectFrom('channelPairing')
    .select(pairingColumns)
    .where('instance', '=', p('instance'))
    .where('channelType', '=', p('channelType'))
    .where('senderId', 'in', json.texts(p('senderIds'))),
);

/** Returns the pairings of senders, pending or approved. */
export const findPairings = operation(
  'channels.findPairings',
  (tx, { instance, channelType, senderIds }: Omit<Paired, 'senderId'> & { readonly senderIds: readonly string[] }): Promise<PairingRow[]> =>
    tx.all(pairingsOf, { instance, channelType, senderIds: JSON.stringify(senderIds) }),
);

/** Returns the pairing of a sender, pending or approved: on another platform the same id is somebody else. */
export const findPairing = operation('channels.findPairing', (tx, { instance, channelType, senderId }: Paired) =>
  tx.get(pairingOf, { instance, channelType, senderId }),
);

const ofOtherPlatform = query<Paired>(({ db, p }) =>
  db
    .deleteFrom('channelPairing')
    .where('instance', '=', p('instance'))
    .where('senderId', '=', p('senderId'))
    .where('channelType', '<>', p('channelType')),
);
const overdue = query<{ atMs: number }>(({ db, p }) =>
  db.deleteFrom('channelPairing').where('codeMac', 'is not', null).where('expiresAtMs', '<=', p('atMs')),
);
const pending = query<{ instance: string }, { n: number }>(({ db, sql, p }) =>
  db
    .selectFrom('channelPairing')
    .select(sql<number>`count(*)`.as('n'))
    .where('instance', '=', p('instance'))
    .where('codeMac', 'is not', null),
);
const request = query<PairingRow>(({ db, each }) =>
  db
    .insertInto('channelPairing')
    .values(each(pairingColumns))
    .onConflict((conflict) => conflict.columns(['instance', 'senderId']).doNothing()),
);

/** Stores a request; false when the sender has one, or too many others wait: then nothing is answered. */
export async function requestPairing(tx: Tx, row: PairingRow): Promise<boolean> {
  const { instance, channelType, senderId, requestedAtMs } = row;
  await tx.run(overdue, { atMs: requestedAtMs });
  await tx.run(ofOtherPlatform, { instance, channelType, senderId });
  if (((await tx.get(pending, { instance }))?.n ?? 0) >= maxRequests) return false;
  return (await tx.run(request, row)).changes > 0;
}

type Place = Pick<PairingRow, 'instance' | 'channelType' | 'conversationId'>;

/** Nothing is sent to the conversation, also when its messages are pruned. */
const keepOut = query<Place & { atMs: number }>(({ db, each }) =>
  db
    .insertInto('channelRemoved')
    .values(each(['instance', 'channelType', 'conversationId', 'atMs']))
    .onConflict((conflict) => conflict.doNothing()),
);
const admitAgain = query<Place>(({ db, p }) =>
  db
    .deleteFrom('channelRemoved')
    .where('instance', '=', p('instance'))
    .where('channelType', '=', p('channelType'))
    .where('conversationId', '=', p('conversationId')),
);

const byCode = query<{ codeMac: string; atMs: number }, PairingRow>(({ db, p }) =>
  db.selectFrom('channelPairing').select(pairingColumns).where('codeMac', '=', p('codeMac')).where('expiresAtMs', '>', p('atMs')).forUpdate(),
);
const approve = query<{ id: string; person: string | null; principalId: string }>(({ db, p }) =>
  db
    .updateTable('channelPairing')
    .set({ codeMac: null, expiresAtMs: null, person: p('person'), principalId: p('principalId') })
    .where('id', '=', p('id')),
);

export interface Approval extends Within {
  readonly codeMac: string;
  readonly person: string | null;
  /** Principal of the person; null: that of the sender alone. */
  readonly personPrincipalId: string | null;
  readonly audit: AuditRow;
  readonly atMs: number;
}

/** Limits what a caller reaches to some instances; null: all. */
interface Within {
  readonly instances: readonly string[] | null;
}

/** Approves the request with this code; undefined when there is none. */
export const approvePairing = operation(
  'channels.pair',
  async (tx, { codeMac, instances, person, personPrincipalId, audit, atMs }: Approval): Promise<PairingRow | undefined> => {
    const row = await tx.get(byCode, { codeMac, atMs });
    if (row === undefined || instances?.includes(row.instance) === false) return undefined;
    const principalId = personPrincipalId ?? principalOfSender(row);
    await tx.run(approve, { id: row.id, person, principalId });
    await tx.run(admitAgain, { instance: row.instance, channelType: row.channelType, conversationId: row.conversationId });
    const metadata = { instance: row.instance, senderId: row.senderId, ...(person !== null && { person }) };
    await appendAudit(tx, { ...audit, target: row.id, metadata });
    return { ...row, codeMac: null, expiresAtMs: null, person, principalId };
  },
);

const pairingById = query<{ id: string }, PairingRow>(({ db, p }) =>
  db.selectFrom('channelPairing').select(pairingColumns).where('id', '=', p('id')),
);
const removeById = query<{ id: string }>(({ db, p }) => db.deleteFrom('channelPairing').where('id', '=', p('id')));

/** Ends a pairing or refuses a request. */
export const removePairing = operation(
  'channels.unpair',
  async (tx, { id, instances, audit }: Within & { readonly id: string; readonly audit: AuditRow }): Promise<PairingRow> => {
    const row = await tx.get(pairingById, { id });
    if (row === undefined || instances?.includes(row.instance) === false)
      throw new AppError('not_found', 'Pairing not found', { param: 'pairingId' });
    await tx.run(removeById, { id });
    if (row.codeMac === null) {
      const { instance, channelType, conversationId } = row;
      await tx.run(keepOut, { instance, channelType, conversationId, atMs: audit.atMs });
    }
    await appendAudit(tx, { ...audit, metadata: { instance: row.instance, senderId: row.senderId } });
    return row;
  },
);

interface Page {
  readonly offset: number;
  readonly limit: number;
}

/** Returns pairings, pending ones first, with their number. */
export const listPairings = operation(
  'channels.pairings',
  async (
    tx,
    { instances, state, atMs, offset, limit }: Page & Within & { readonly state: 'pending' | 'approved' | null; readonly atMs: number },
  ): Promise<{ rows: PairingRow[]; total: number }> => {
    if (instances?.length === 0) return { rows: [], total: 0 };
    const all = await tx.build<PairingRow>((db) => {
      let from = db.selectFrom('channelPairing').where((where) => where.or([where('codeMac', 'is', null), where('expiresAtMs', '>', atMs)]));
      if (instances !== null) from = from.where('instance', 'in', instances);
      if (state !== null) from = from.where('codeMac', state === 'pending' ? 'is not' : 'is', null);
      return from.select(pairingColumns).orderBy('id', 'desc').limit(1_000);
    });
    const sorted = all.toSorted((a, b) => Number(a.codeMac === null) - Number(b.codeMac === null));
    return { rows: sorted.slice(offset, offset + limit), total: all.length };
  },
);

const approved = query<object, Pick<PairingRow, 'person' | 'principalId'>>(({ db }) =>
  db.selectFrom('channelPairing').select(['person', 'principalId']).where('codeMac', 'is', null),
);

/** Returns whom the operator approved. */
export const listApproved = operation('channels.approved', (tx) => tx.all(approved, {}));

export interface ListedMessage extends MessageRow {
  /** State of its work; null when it has none. */
  readonly state: string | null;
}

/** Returns messages, newest first, with their number. */
export const listMessages = operation(
  'channels.messages',
  async (
    tx,
    { agentIds, instance, offset, limit }: Page & { readonly agentIds: readonly string[] | null; readonly instance: string | null },
  ): Promise<{ rows: ListedMessage[]; total: number }> => {
    if (agentIds?.length === 0) return { rows: [], total: 0 };
    const rows = await tx.build<ListedMessage>((db) => {
      let from = db
        .selectFrom('channelMessage')
        .leftJoin('workItem', (join) =>
          join.onRef('workItem.workKey', '=', 'channelMessage.id').on('workItem.kind', 'in', [messageKind, commandKind]),
        );
      if (agentIds !== null) from = from.where('channelMessage.agentId', 'in', agentIds);
      if (instance !== null) from = from.where('instance', '=', instance);
      return from
        .select([...messageColumns.map((name) => `channelMessage.${name}` as const), 'workItem.state'])
        .orderBy('channelMessage.id', 'desc')
        .offset(offset)
        .limit(limit);
    });
    const [count] = await tx.build<{ n: number }>((db, sql) => {
      let from = db.selectFrom('channelMessage').select(sql<number>`count(*)`.as('n'));
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (instance !== null) from = from.where('instance', '=', instance);
      return from;
    });
    return { rows, total: count?.n ?? 0 };
  },
);

const unanswered = query<{ conversationRef: string }, { n: number }>(({ db, sql, p }) =>
  db
    .selectFrom('workItem')
    .select(sql<number>`count(*)`.as('n'))
    .where('kind', '=', messageKind)
    .where('endedAtMs', 'is', null)
    .where(sql<boolean>`work_key in (select id from channel_message where conversation_ref = ${p('conversationRef')})`),
);

/** Counts the messages of a conversation whose turns wait or run. */
export const countUnanswered = operation(
  'channels.unanswered',
  async (tx, input: { readonly conversationRef: string }): Promise<number> => (await tx.get(unanswered, input))?.n ?? 0,
);

const old = query<{ beforeId: string; limit: number }, { id: string }>(({ db, p }) =>
  db.selectFrom('channelMessage').select('id').where('id', '<', p('beforeId')).orderBy('id').limit(p('limit')),
);

/** Deletes some messages; returns how many. */
export const pruneMessages = operation(
  'channels.prune',
  async (tx, { beforeMs, limit }: { readonly beforeMs: number; readonly limit: number }): Promise<number> => {
    const ids = (await tx.all(old, { beforeId: idBefore('cm', beforeMs), limit })).map(({ id }) => id);
    if (ids.length > 0) await tx.build((db) => db.deleteFrom('channelMessage').where('id', 'in', ids));
    return ids.length;
  },
);

const oldest = query<object, { atMs: number }>(({ db }) => db.selectFrom('channelMessage').select('receivedAtMs as atMs').orderBy('id').limit(1));

/** Returns the time of the oldest message that is kept. */
export const oldestMessage = operation('channels.oldest', async (tx): Promise<number | undefined> => (await tx.get(oldest, {}))?.atMs);

const forget = query<{ conversationRef: string }>(({ db, p }) => db.deleteFrom('channelMessage').where('conversationRef', '=', p('conversationRef')));

/** Deletes the messages of a conversation that is being deleted. */
export async function forgetMessages(tx: Tx, input: { readonly conversationRef: string }): Promise<void> {
  await tx.run(forget, input);
}

export const channelMessageOperations = [
  findPairing,
  findPairings,
  approvePairing,
  removePairing,
  listPairings,
  listApproved,
  countUnanswered,
  listMessages,
  pruneMessages,
  oldestMessage,
  readCursor,
  readFiles,
  saveFiles,
  readPreview,
  savePreview,
  findMessage,
];
