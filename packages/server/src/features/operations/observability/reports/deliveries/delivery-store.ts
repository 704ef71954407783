import type { DeliveryStatus } from '@gatehouse/contract';
import type { Kysely } from 'kysely';
import { operation, query, type QueryTools } from '../../../../../kernel/db/operation.ts';
import type { Tables } from '../../../../../kernel/db/tables.ts';

export interface DeliveryFilter {
  /** First start of a lifecycle. */
  readonly sinceMs: number;
  /** Only what was recorded after this number. */
  readonly afterSeq: number;
  readonly includeSynthetic: boolean;
  /** Only those of these agents; all when null. */
  readonly agentIds: readonly string[] | null;
  readonly channelType?: string | undefined;
  readonly channelId?: string | undefined;
}

type Sql = QueryTools<object>['sql'];

/** Answers to clients, and the deliveries of webhooks and the inbox. The turn of a webhook is part of its delivery; a waiting turn has not ended. */
function lifecycles(db: Kysely<Tables>, sql: Sql, filter: DeliveryFilter) {
  let found = db
    .selectFrom('traceRecord')
    .where('startedAtMs', '>=', filter.sinceMs)
    .where('seq', '>', filter.afterSeq)
    .where(sql<boolean>`(kind = 'delivery' OR (kind = 'turn' AND outcome <> 'waiting' AND origin IN ('v1', 'rpc', 'api', 'mcp', 'channel')))`);
  if (!filter.includeSynthetic) found = found.where('synthetic', '=', 0);
  if (filter.agentIds !== null) found = found.where('agentId', 'in', filter.agentIds);
  if (filter.channelType !== undefined) found = found.where('channelType', '=', filter.channelType);
  if (filter.channelId !== undefined) found = found.where('channelId', '=', filter.channelId);
  return found;
}

const statusOf = (sql: Sql) => sql<DeliveryStatus>`CASE
  WHEN kind = 'delivery' AND end_reason IN ('success', 'error', 'timeout', 'filtered', 'cancelled') THEN end_reason
  WHEN outcome = 'cancelled' THEN 'cancelled'
  WHEN outcome = 'skipped' THEN 'filtered'
  WHEN outcome = 'failed' AND (end_reason = 'timeout' OR error_kind = 'timeout') THEN 'timeout'
  WHEN outcome = 'failed' THEN 'error'
  ELSE 'success' END`;

export interface DeliveryCount {
  readonly status: DeliveryStatus;
  readonly count: number;
  readonly latencyMs: number;
}

/** Counts completed lifecycles by their status, with the sum of their durations: read from one index. */
export const countLifecycles = operation('obs.countLifecycles', async (tx, filter: DeliveryFilter): Promise<DeliveryCount[]> =>
  tx.build<DeliveryCount>((db, sql) => {
    const status = statusOf(sql);
    return lifecycles(db, sql, filter)
      .select([status.as('status'), sql<number>`count(*)`.as('count')])
      .select(sql<number>`CAST(sum(CASE WHEN ended_at_ms > started_at_ms THEN ended_at_ms - started_at_ms ELSE 0 END) AS BIGINT)`.as('latencyMs'))
      .groupBy(status);
  }),
);

export interface LifecycleRow {
  readonly id: string;
  readonly kind: string;
  readonly status: DeliveryStatus;
  readonly channelType: string | null;
  readonly channelId: string | null;
  readonly agentId: string | null;
  readonly sessionKey: string | null;
  readonly conversationRef: string | null;
  readonly traceId: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly errorKind: string | null;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: number | null;
}

/** Returns the newest completed lifecycles. */
export const listLifecycles = operation(
  'obs.listLifecycles',
  async (tx, { limit, ...filter }: DeliveryFilter & { readonly limit: number }): Promise<LifecycleRow[]> =>
    tx.build<LifecycleRow>((db, sql) =>
      lifecycles(db, sql, filter)
        .select(['id', 'kind', 'channelType', 'channelId', 'agentId', 'sessionKey', 'conversationRef', 'traceId', 'startedAtMs', 'endedAtMs'])
        .select(['errorKind', 'modelCalls', 'toolCalls', 'inputTokens', 'outputTokens', 'costNano', statusOf(sql).as('status')])
        .orderBy('startedAtMs', 'desc')
        .orderBy('seq', 'desc')
        .limit(limit),
    ),
);

const newest = query<object, { seq: number }>(({ db, sql }) => db.selectFrom('traceRecord').select(sql<number>`coalesce(max(seq), 0)`.as('seq')));

/** Returns the number of the newest record. */
export const newestRecord = operation('obs.newestRecord', async (tx): Promise<number> => (await tx.get(newest, {}))?.seq ?? 0);

/** Deletes some records up to a number, all or those of deliveries alone; returns how many. */
export const dropRecords = operation(
  'obs.dropRecords',
  async (tx, { kind, upTo, limit }: { readonly kind: 'delivery' | null; readonly upTo: number; readonly limit: number }): Promise<number> => {
    const dropped = await tx.build<{ seq: number }>((db) => {
      let old = db.selectFrom('traceRecord').select('seq').where('seq', '<=', upTo);
      if (kind !== null) old = old.where('kind', '=', kind);
      return db.deleteFrom('traceRecord').where('seq', 'in', old.limit(limit)).returning('seq');
    });
    return dropped.length;
  },
);

export const deliveryOperations = [countLifecycles, listLifecycles, newestRecord, dropRecords];
