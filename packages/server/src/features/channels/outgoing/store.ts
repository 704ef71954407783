import { operation, query, type OperationCall, type Tx } from '../../../kernel/db/operation.ts';
import type { Destination } from '../delivery/api.ts';
import type { Begun, MessageOperation, OperationState, PartState } from './api.ts';

/** Identities are known at least this long. */
const keptMs = 30 * 24 * 60 * 60_000;
/** Old ones that are deleted with each new one. */
const prunedAtOnce = 8;

/** Which conversations a caller reaches; null: all. */
export interface Reach {
  readonly agentIds: readonly string[] | null;
  readonly principalId: string | null;
  /** The conversation of the call, which may have no row yet. */
  readonly conversationRef: string | null;
}

/** What is stored of the conversation of an endpoint; null: not known. */
export interface Found {
  readonly agentId: string | null;
  readonly principalId: string | null;
  readonly conversationRef: string | null;
}

export interface Place {
  readonly to: Destination;
  readonly reach: Reach;
}

/** Finds a conversation that has all fields of an endpoint and in which people wrote. */
export const findReceived = operation('outgoing.findReceived', async (tx, { to, reach }: Place): Promise<Found | undefined> => {
  const [row] = await tx.build<Found>((db) => {
    let from = db
      .selectFrom('channelMessage')
      .leftJoin('conversation', 'conversation.ref', 'channelMessage.conversationRef')
      .where('instance', '=', to.instance)
      .where('channelType', '=', to.channelType)
      .where('channelMessage.conversationId', '=', to.conversationId)
      .where('threadId', to.threadId === null ? 'is' : '=', to.threadId)
      .where('conversationKind', '=', to.conversationKind);
    if (reach.agentIds !== null) from = from.where('channelMessage.agentId', 'in', reach.agentIds);
    const { principalId, conversationRef } = reach;
    if (principalId !== null)
      from = from.where((where) =>
        where.or([
          where('conversation.principalId', '=', principalId),
          ...(conversationRef === null ? [] : [where('channelMessage.conversationRef', '=', conversationRef)]),
        ]),
      );
    return from
      .select(['channelMessage.agentId', 'conversation.principalId', 'channelMessage.conversationRef'])
      .orderBy('channelMessage.id', 'desc')
      .limit(1);
  });
  return row;
});

/** Finds one in which people were written to. */
export const findSent = operation('outgoing.findSent', async (tx, { to, reach }: Place): Promise<Found | undefined> => {
  const [row] = await tx.build<Found>((db) => {
    let from = db
      .selectFrom('outboundMessage')
      .where('instance', '=', to.instance)
      .where('channelType', '=', to.channelType)
      .where('conversationId', '=', to.conversationId)
      .where('threadId', to.threadId === null ? 'is' : '=', to.threadId)
      .where('conversationKind', '=', to.conversationKind);
    if (reach.agentIds !== null) from = from.where('agentId', 'in', reach.agentIds);
    if (reach.principalId !== null) from = from.where('principalId', '=', reach.principalId);
    return from.select(['agentId', 'principalId', 'conversationRef']).orderBy('id', 'desc').limit(1);
  });
  return row;
});

/** Finds a direct one, without a thread, with an approved person. */
export const findPaired = operation('outgoing.findPaired', async (tx, { to, reach }: Place): Promise<Found | undefined> => {
  const [row] = await tx.build<{ principalId: string | null }>((db) => {
    let from = db
      .selectFrom('channelPairing')
      .where('instance', '=', to.instance)
      .where('channelType', '=', to.channelType)
      .where('conversationId', '=', to.conversationId)
      .where('codeMac', 'is', null);
    if (reach.principalId !== null) from = from.where('principalId', '=', reach.principalId);
    return from.select('principalId').orderBy('id').limit(1);
  });
  return row && { agentId: null, principalId: row.principalId, conversationRef: null };
});

/** Message of ours or of a platform that a caller names. */
interface Named {
  readonly to: Destination;
  readonly id: string;
}

const placeColumns = ['instance', 'channelType', 'conversationId', 'threadId', 'conversationKind'] as const;
type StoredPlace = Destination & { readonly platformId: string | null };

const received = query<{ id: string }, StoredPlace>(({ db, p }) =>
  db
    .selectFrom('channelMessage')
    .select([...placeColumns, 'platformId'])
    .where('id', '=', p('id')),
);
const sent = query<{ id: string }, StoredPlace>(({ db, p }) =>
  db
    .selectFrom('outboundMessage')
    .select([...placeColumns, 'platformId'])
    .where('id', '=', p('id')),
);

/** Returns the platform's id of a message of ours, null when it has none; undefined when it does not belong to the endpoint. */
export const findOwnMessage = operation('outgoing.findMessage', async (tx, { to, id }: Named): Promise<{ platformId: string | null } | undefined> => {
  const row = await tx.get(id.startsWith('cm_') ? received : sent, { id });
  return row !== undefined && placeColumns.every((name) => row[name] === to[name]) ? { platformId: row.platformId } : undefined;
});

const newest = query<{ conversationRef: string }, Destination & { readonly id: string }>(({ db, p }) =>
  db
    .selectFrom('channelMessage')
    .select([...placeColumns, 'id'])
    .where('conversationRef', '=', p('conversationRef'))
    .orderBy('id', 'desc')
    .limit(1),
);

/** Returns the newest message of a conversation, with where it came from. */
export const findNewest = operation('outgoing.newest', (tx, input: { readonly conversationRef: string }) => tx.get(newest, input));

const parts = query<{ opKey: string }, PartState>(({ db, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(['id', 'part', 'state', 'platformId', 'errorKind', 'error'])
    .where('opKey', '=', p('opKey'))
    .orderBy('part'),
);

/** Returns the parts of a message by what it is for. */
export const readParts = operation('outgoing.parts', (tx, input: { readonly opKey: string }): Promise<PartState[]> => tx.all(parts, input));

const insert = query<MessageOperation>(({ db, p, each }) =>
  db
    .insertInto('messageOperation')
    .values({
      ...each(['id', 'method', 'digest', 'rootRunId', 'agentId', 'state', 'bootId']),
      createdAtMs: p('atMs'),
      endedAtMs: null,
    })
    .onConflict((conflict) => conflict.column('id').doNothing()),
);
const stored = query<{ id: string }, { digest: string; state: OperationState; bootId: string }>(({ db, p }) =>
  db.selectFrom('messageOperation').select(['digest', 'state', 'bootId']).where('id', '=', p('id')),
);
const old = query<{ beforeMs: number; limit: number }>(({ db, p }) =>
  db
    .deleteFrom('messageOperation')
    .where('id', 'in', db.selectFrom('messageOperation').select('id').where('createdAtMs', '<', p('beforeMs')).limit(p('limit'))),
);

/** Enters an operation into the ledger; what was entered before stays. Part of `sendMessage`. */
export async function enterOperation(tx: Tx, entered: MessageOperation): Promise<Begun> {
  if ((await tx.run(insert, entered)).changes > 0) {
    await tx.run(old, { beforeMs: entered.atMs - keptMs, limit: prunedAtOnce });
    return { is: 'new' };
  }
  const row = await tx.get(stored, { id: entered.id });
  if (row === undefined) throw new Error('the operation is gone');
  if (row.digest !== entered.digest) return { is: 'conflict' };
  return { is: 'repeat', state: row.state, bootId: row.bootId };
}

/** Enters an operation that asks a platform itself, before it does. */
export const beginAct = operation('outgoing.beginAct', (tx, input: MessageOperation) => enterOperation(tx, input));

const end = query<{ id: string; state: OperationState; atMs: number }>(({ db, p }) =>
  db
    .updateTable('messageOperation')
    .set({ state: p('state'), endedAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where('state', '=', 'started'),
);
const remove = query<{ id: string }>(({ db, p }) => db.deleteFrom('messageOperation').where('id', '=', p('id')).where('state', '=', 'started'));

export interface ActEnd {
  readonly id: string;
  /** `undone`: it had certainly no effect and may be tried again. */
  readonly is: 'done' | 'unknown' | 'undone';
  readonly alongside: readonly OperationCall[];
  readonly atMs: number;
}

/** Stores what became of an operation that asked a platform itself; false when it had ended. */
export const endAct = operation('outgoing.endAct', async (tx, { id, is, alongside, atMs }: ActEnd): Promise<boolean> => {
  const { changes } = is === 'undone' ? await tx.run(remove, { id }) : await tx.run(end, { id, state: is, atMs });
  if (changes > 0) for (const call of alongside) await tx.call(call);
  return changes > 0;
});

export const outgoingOperations = [findReceived, findSent, findPaired, findOwnMessage, findNewest, readParts, beginAct, endAct];
