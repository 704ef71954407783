import type { WebhookDelivery } from '@gatehouse/contract';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { parseJson } from '../../../kernel/json.ts';

/** Kind of the durable work that runs deliveries; its key is the id of the delivery. */
export const deliveryKind = 'webhook';
/** How long a repeat counts as the same delivery (decisions §6). */
export const sameMs = 24 * 60 * 60_000;
/** How long deliveries are kept, the same as their work, and their maximum number. */
export const keptMs = 7 * 24 * 60 * 60_000;
export const maxKept = 20_000;

export interface DeliveryRow {
  /** `wd_<uuid>` */
  readonly id: string;
  readonly mappingId: string;
  readonly action: 'agent' | 'wake';
  /** Null when the state is that of its work. */
  readonly ownState: 'done' | 'ignored' | null;
  /** Body key, a dot, and the key shared by repeats; null when every delivery is new. */
  readonly liveKey: string | null;
  readonly senderId: string | null;
  readonly bodyDigest: string;
  readonly bodyBytes: number;
  readonly agentId: string;
  readonly conversationRef: string | null;
  readonly sessionKey: string | null;
  /** Rendered, not yet fenced. */
  readonly message: string;
  readonly remoteAddress: string | null;
  readonly traceId: string;
  readonly replayOf: string | null;
  readonly receivedAtMs: number;
}

const columns = [
  'webhookDelivery.id',
  'mappingId',
  'action',
  'ownState',
  'liveKey',
  'senderId',
  'bodyDigest',
  'bodyBytes',
  'webhookDelivery.agentId',
  'conversationRef',
  'sessionKey',
  'message',
  'remoteAddress',
  'traceId',
  'replayOf',
  'receivedAtMs',
] as const;

const byLiveKey = query<{ liveKey: string }, { id: string; receivedAtMs: number }>(({ db, p }) =>
  db.selectFrom('webhookDelivery').select(['id', 'receivedAtMs']).where('liveKey', '=', p('liveKey')).forUpdate(),
);
const releaseKey = query<{ id: string }>(({ db, p }) => db.updateTable('webhookDelivery').set({ liveKey: null }).where('id', '=', p('id')));
const repeat = query<{ id: string }>(({ db, sql, p }) =>
  db
    .updateTable('webhookDelivery')
    .set({ repeats: sql<number>`repeats + 1` })
    .where('id', '=', p('id')),
);
const insert = query<DeliveryRow>(({ db, each }) =>
  db.insertInto('webhookDelivery').values({
    ...each([
      'id',
      'mappingId',
      'action',
      'ownState',
      'liveKey',
      'senderId',
      'bodyDigest',
      'bodyBytes',
      'agentId',
      'conversationRef',
      'sessionKey',
      'message',
      'remoteAddress',
      'traceId',
      'replayOf',
      'receivedAtMs',
    ]),
    repeats: 0,
  }),
);
const ofBody = query<{ fromKey: string; beforeKey: string; sinceMs: number }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('webhookDelivery')
    .select('id')
    .where('liveKey', '>=', p('fromKey'))
    .where('liveKey', '<', p('beforeKey'))
    .where('receivedAtMs', '>', p('sinceMs'))
    .limit(1),
);

/**
 * Returns whether the same delivery exists, and counts the repeat, or else one with the same body. A delivery that is too old loses
 * its key.
 */
export async function recognize(tx: Tx, { liveKey }: Pick<DeliveryRow, 'liveKey'>, sinceMs: number): Promise<'delivery' | 'body' | undefined> {
  if (liveKey === null) return undefined;
  const body = liveKey.slice(0, liveKey.indexOf('.'));
  // `/` follows the dot in ASCII and occurs in no digest.
  const keys = { fromKey: `${body}.`, beforeKey: `${body}/` };
  // One query for most deliveries: a delivery with the same key also has the same body.
  if ((await tx.get(ofBody, { ...keys, sinceMs: 0 })) === undefined) return undefined;
  const same = await tx.get(byLiveKey, { liveKey });
  if (same !== undefined) await tx.run(same.receivedAtMs > sinceMs ? repeat : releaseKey, { id: same.id });
  if (same !== undefined && same.receivedAtMs > sinceMs) return 'delivery';
  return (await tx.get(ofBody, { ...keys, sinceMs })) === undefined ? undefined : 'body';
}

/** Stores a new delivery. Part of the operation that accepts its work. */
export async function addDelivery(tx: Tx, row: DeliveryRow): Promise<void> {
  await tx.run(insert, row);
}

const byId = query<{ id: string }, DeliveryRow>(({ db, p }) => db.selectFrom('webhookDelivery').select(columns).where('id', '=', p('id')));

export const findDelivery = operation('webhooks.find', async (tx, input: { readonly id: string }) => tx.get(byId, input));

interface ListedRow extends DeliveryRow {
  readonly repeats: number;
  readonly state: WebhookDelivery['state'];
  readonly resultJson: string | null;
  readonly errorKind: string | null;
  readonly endedAtMs: number | null;
  readonly waitingJson: string | null;
}

/** A delivery and its outcome. */
export interface Listed extends Omit<ListedRow, 'resultJson'> {
  /** Result with which the work was settled. */
  readonly result: unknown;
}

export interface Listing {
  readonly mappingId?: string | undefined;
  /** Those of these agents alone; of all when absent. */
  readonly agentIds?: readonly string[] | undefined;
  readonly state?: WebhookDelivery['state'] | undefined;
  /** Ids are ordered by time. */
  readonly beforeId?: string | undefined;
  readonly sinceMs: number;
  readonly limit: number;
}

/** Returns a page of deliveries, newest first. */
export const listDeliveries = operation(
  'webhooks.deliveries',
  async (tx, { mappingId, agentIds, state, beforeId, sinceMs, limit }: Listing): Promise<Listed[]> => {
    const rows = await tx.build<ListedRow>((db, sql) => {
      const stateNow = sql<WebhookDelivery['state']>`coalesce(own_state, work_item.state, 'unknown')`;
      const waitingNow = sql<string | null>`case when work_item.state = 'accepted' then work_item.waiting_json end`;
      let found = db
        .selectFrom('webhookDelivery')
        .leftJoin('workItem', (join) => join.onRef('workItem.workKey', '=', 'webhookDelivery.id').on('workItem.kind', '=', deliveryKind))
        .select([...columns, 'repeats', stateNow.as('state'), 'resultJson', 'errorKind', 'endedAtMs', waitingNow.as('waitingJson')])
        .where('receivedAtMs', '>', sinceMs)
        .orderBy('webhookDelivery.id', 'desc')
        .limit(limit);
      if (mappingId !== undefined) found = found.where('mappingId', '=', mappingId);
      if (agentIds !== undefined) found = found.where('webhookDelivery.agentId', 'in', [...agentIds]);
      if (beforeId !== undefined) found = found.where('webhookDelivery.id', '<', beforeId);
      return state === undefined ? found : found.where(stateNow, '=', state);
    });
    return rows.map(({ resultJson, ...row }) => ({ ...row, result: resultJson === null ? null : parseJson(resultJson) }));
  },
);

const perMapping = query<{ sinceMs: number }, { mappingId: string; count: number; lastAtMs: number }>(({ db, sql, p }) =>
  db
    .selectFrom('webhookDelivery')
    .select(['mappingId', sql<number>`count(*)`.as('count'), sql<number>`max(received_at_ms)`.as('lastAtMs')])
    .where('receivedAtMs', '>', p('sinceMs'))
    .groupBy('mappingId'),
);

export const countDeliveries = operation('webhooks.count', async (tx, input: { readonly sinceMs: number }) => tx.all(perMapping, input));

// Ids are ordered by time, so no index of times is needed to find the oldest.
const dropOld = query<{ beforeMs: number; limit: number }>(({ db, sql, p }) =>
  db
    .deleteFrom('webhookDelivery')
    .where('receivedAtMs', '<', p('beforeMs'))
    .where(sql<boolean>`id in (select id from webhook_delivery order by id limit ${p('limit')})`),
);
const dropMany = query<{ kept: number; limit: number }>(({ db, sql, p }) =>
  db
    .deleteFrom('webhookDelivery')
    .where(sql<boolean>`id in (select id from webhook_delivery order by id desc limit ${p('limit')} offset ${p('kept')})`),
);

/** Deletes some deliveries beyond age and number limits; returns how many. Pending work keeps the data that it needs. */
export const pruneDeliveries = operation(
  'webhooks.prune',
  async (tx, input: { readonly beforeMs: number; readonly kept: number; readonly limit: number }) => {
    const { beforeMs, kept, limit } = input;
    const old = await tx.run(dropOld, { beforeMs, limit });
    const many = await tx.run(dropMany, { kept, limit });
    return old.changes + many.changes;
  },
);

export const webhookOperations = [findDelivery, listDeliveries, countDeliveries, pruneDeliveries];
