import { operation, query, raw, type Tx } from '../../../kernel/db/operation.ts';
import type { MediaCall, MediaOperation } from './api.ts';

/** Length of a slot; days of zones whose midnight is not a full hour of UTC have edges that are read row by row. */
const slotMs = 3_600_000;
/** Length of the days of UTC, for reports of weeks and years. */
const dayMs = 86_400_000;
/** Principal of the slots that sum the calls of all principals. */
const everybody = '';

export interface UsedRow {
  readonly agentId: string;
  readonly atMs: number;
  readonly tokens: number;
  readonly nano: number;
}

/** Returns per-minute usage of each agent since `sinceMs`, from the calls. Excludes calls later than `untilMs`: the clock was ahead, their time is unknown. */
export const usedSince = operation(
  'budgets.usedSince',
  async (tx, input: { readonly sinceMs: number; readonly untilMs: number; readonly stepMs: number }): Promise<UsedRow[]> =>
    tx.build<UsedRow>((db, sql) => {
      // Inlined in the text: a bound number is a float, and so would be the quotient.
      const step = sql<number>`at_ms / ${sql.lit(input.stepMs)} * ${sql.lit(input.stepMs)}`;
      return (
        db
          .selectFrom('modelCall')
          // Both marks, because the index begins with them.
          .where('rolledUp', 'in', [0, 1])
          .where('atMs', '>=', input.sinceMs)
          .where('atMs', '<=', input.untilMs)
          .select(['agentId', step.as('atMs'), sql<number>`sum(input_tokens + output_tokens)`.as('tokens')])
          .select(sql<number>`coalesce(sum(cost_nano), 0)`.as('nano'))
          .groupBy(['agentId', step])
      );
    }),
);

/** Returns per-minute usage of each of these principals, as `usedSince`. */
export const usedByPrincipals = operation(
  'budgets.usedByPrincipals',
  async (
    tx,
    input: { readonly sinceMs: number; readonly untilMs: number; readonly stepMs: number; readonly principalIds: readonly string[] },
  ): Promise<(Omit<UsedRow, 'agentId'> & { readonly principalId: string })[]> =>
    tx.build((db, sql) => {
      const step = sql<number>`at_ms / ${sql.lit(input.stepMs)} * ${sql.lit(input.stepMs)}`;
      return db
        .selectFrom('modelCall')
        .where('rolledUp', 'in', [0, 1])
        .where('atMs', '>=', input.sinceMs)
        .where('atMs', '<=', input.untilMs)
        .where('principalId', 'in', input.principalIds)
        .select(['principalId', step.as('atMs'), sql<number>`sum(input_tokens + output_tokens)`.as('tokens')])
        .select(sql<number>`coalesce(sum(cost_nano), 0)`.as('nano'))
        .groupBy(['principalId', step]);
    }),
);

/** Returns the calls of these operations that succeeded in a time, in order. */
export const succeededCalls = operation(
  'budgets.succeededCalls',
  (tx, input: { readonly operations: readonly MediaOperation[]; readonly sinceMs: number; readonly untilMs: number }): Promise<MediaCall[]> =>
    tx.build<MediaCall>((db) =>
      db
        .selectFrom('modelCall')
        // Both marks, because the index begins with them.
        .where('rolledUp', 'in', [0, 1])
        .where('atMs', '>', input.sinceMs)
        .where('atMs', '<=', input.untilMs)
        .where('outcome', '=', 'ok')
        .where('operation', 'in', input.operations)
        .select(['operation', 'agentId', 'atMs'])
        .orderBy('atMs'),
    ),
);

const unmarked = query<{ limit: number }, { id: number }>(({ db, sql, p }) =>
  db
    .selectFrom('modelCall')
    .select('id')
    .where(sql<boolean>`rolled_up = 0`)
    .orderBy('atMs')
    .limit(p('limit')),
);

/**
 * Adds calls to their slots; returns true when there may be more. Never part of a turn, which would pay for it. Each call has a mark,
 * as ids do not show what is new: with several writers a call may become visible after others with higher ids.
 */
export const rollUp = operation('budgets.rollUp', async (tx, { limit }: { readonly limit: number }): Promise<boolean> => {
  const ids = (await tx.all(unmarked, { limit })).map(({ id }) => id);
  if (ids.length === 0) return false;
  await addTo(tx, 'usage_slot', slotMs, ids);
  await addTo(tx, 'usage_day', dayMs, ids);
  await tx.build((db) => db.updateTable('modelCall').set({ rolledUp: 1 }).where('id', 'in', ids));
  return ids.length === limit;
});

/** Adds calls to the sums of their hours, or of their days. */
async function addTo(tx: Tx, table: 'usage_slot' | 'usage_day', lengthMs: number, ids: readonly number[]): Promise<void> {
  await tx.build((db, sql) =>
    raw(
      db,
      sql`INSERT INTO ${sql.raw(table)} (slot_ms, agent_id, principal_id, provider, model, operation,
            calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nano, saved_nano, unpriced)
          SELECT at_ms / ${sql.lit(lengthMs)} * ${sql.lit(lengthMs)}, agent_id, principal, provider, model, operation,
            count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens),
            coalesce(sum(cost_nano), 0), coalesce(sum(saved_nano), 0), count(*) - count(cost_nano)
          FROM (
            SELECT *, principal_id AS principal FROM model_call WHERE id IN (${sql.join(ids)})
            UNION ALL
            SELECT *, ${everybody} AS principal FROM model_call WHERE id IN (${sql.join(ids)})
          ) AS calls
          WHERE 1 = 1
          GROUP BY 1, 2, 3, 4, 5, 6
          ON CONFLICT (principal_id, slot_ms, agent_id, provider, model, operation) DO UPDATE SET
            calls = ${sql.raw(table)}.calls + excluded.calls,
            input_tokens = ${sql.raw(table)}.input_tokens + excluded.input_tokens,
            output_tokens = ${sql.raw(table)}.output_tokens + excluded.output_tokens,
            cache_read_tokens = ${sql.raw(table)}.cache_read_tokens + excluded.cache_read_tokens,
            cache_write_tokens = ${sql.raw(table)}.cache_write_tokens + excluded.cache_write_tokens,
            cost_nano = ${sql.raw(table)}.cost_nano + excluded.cost_nano,
            saved_nano = ${sql.raw(table)}.saved_nano + excluded.saved_nano,
            unpriced = ${sql.raw(table)}.unpriced + excluded.unpriced`,
    ),
  );
}

export type UsageKey = 'day' | 'agent' | 'model' | 'provider' | 'operation' | 'conversation';

/** A time range with the name under which its calls are grouped. */
export interface UsageRange {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface UsageQuery {
  /** Ascending, without overlap; the days of the caller's time zone when they are asked for. */
  readonly ranges: readonly UsageRange[];
  readonly groupBy: readonly UsageKey[];
  /** Only calls for this principal; all when null. */
  readonly principalId: string | null;
  /** Only calls of these agents; all when null. */
  readonly agentIds: readonly string[] | null;
  /** Leaves out calls that were charged to these. */
  readonly exceptOperations?: readonly string[];
  /** Only calls of these conversations: reads every call of the ranges. */
  readonly conversationRefs?: readonly string[];
  readonly limit: number;
}

export interface UsageAnswer {
  readonly rows: readonly UsageRow[];
  /** Number of groups, including those beyond the limit. */
  readonly groups: number;
  readonly totals: UsageSums;
}

export interface UsageSums {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** Sum over the calls with a known price. */
  readonly costNano: number;
  readonly savedNano: number;
  readonly unpriced: number;
}

export interface UsageRow extends UsageSums {
  readonly key1: string | null;
  readonly key2: string | null;
}

/**
 * Sums calls by one or two keys, and in all. Reads whole days and hours from their sums, edges and the newest calls from their rows, in
 * one snapshot; calls that retention deleted count at the beginning of their quarter of an hour.
 */
export const usageReport = operation(
  'budgets.usageReport',
  async (tx, asked: UsageQuery): Promise<{ rows: UsageRow[]; groups: number; totals: UsageSums }> => {
    // Slots have no conversations, of which there are as many as calls.
    const parts = asked.groupBy.includes('conversation') || asked.conversationRefs !== undefined ? rowsOnly(asked.ranges) : divide(asked.ranges);
    const found = await tx.build((db, sql, dialect) => {
      type Raw = ReturnType<typeof sql>;
      const list = (ranges: readonly UsageRange[]): Raw =>
        ranges.length === 0
          ? sql`SELECT '' AS name, 0 AS from_ms, 0 AS to_ms WHERE 1 = 0`
          : sql`VALUES ${sql.join(ranges.map(({ name, fromMs, toMs }) => sql`(${name}, CAST(${fromMs} AS BIGINT), CAST(${toMs} AS BIGINT))`))}`;
      const ofAgents = (table: 's' | 'c'): Raw => {
        const { agentIds } = asked;
        if (agentIds === null) return sql``;
        return agentIds.length === 0 ? sql` AND 1 = 0` : sql` AND ${sql.ref(table)}.agent_id IN (${sql.join(agentIds)})`;
      };
      const without = (table: 's' | 'c'): Raw => {
        const { exceptOperations: left = [] } = asked;
        return left.length === 0 ? sql`` : sql` AND ${sql.ref(table)}.operation NOT IN (${sql.join(left)})`;
      };
      const ofConversations = (): Raw => {
        const { conversationRefs: refs } = asked;
        if (refs === undefined) return sql``;
        return refs.length === 0 ? sql` AND 1 = 0` : sql` AND c.conversation_ref IN (${sql.join(refs)})`;
      };
      const slots = sql` AND s.principal_id = ${asked.principalId ?? everybody}${ofAgents('s')}${without('s')}`;
      const ofPrincipal = asked.principalId === null ? sql`` : sql` AND c.principal_id = ${asked.principalId}`;
      const rows = sql`${ofPrincipal}${ofAgents('c')}${without('c')}${ofConversations()}`;
      const keyOf = (key: UsageKey | undefined, table: 's' | 'c'): Raw => {
        if (key === undefined) return sql`NULL`;
        if (key === 'day') return sql`r.name`;
        if (key === 'conversation') return table === 'c' ? sql`nullif(c.conversation_ref, '')` : sql`NULL`;
        const t = sql.ref(table);
        if (key === 'model') return sql`${t}.provider || '/' || ${t}.model`;
        return key === 'agent' ? sql`${t}.agent_id` : sql`${t}.${sql.ref(key)}`;
      };
      const keys = (table: 's' | 'c'): Raw => sql`${keyOf(asked.groupBy[0], table)} AS key1, ${keyOf(asked.groupBy[1], table)} AS key2`;
      const ofCall = sql`1 AS calls, c.input_tokens, c.output_tokens, c.cache_read_tokens, c.cache_write_tokens,
        coalesce(c.cost_nano, 0) AS cost_nano, coalesce(c.saved_nano, 0) AS saved_nano, CASE WHEN c.cost_nano IS NULL THEN 1 ELSE 0 END AS unpriced`;
      // In SQLite, CROSS JOIN keeps the order of the tables: ranges first and then the index, or the newest calls first.
      const join = sql.raw(dialect === 'sqlite' ? 'CROSS JOIN' : 'JOIN');
      const all = sql<UsageRow & { groups: number } & Record<`all_${keyof UsageSums}`, number>>`
        WITH day(name, from_ms, to_ms) AS (${list(parts.days)}),
          whole(name, from_ms, to_ms) AS (${list(parts.slots)}),
          edge(name, from_ms, to_ms) AS (${list(parts.rows)}),
          wanted(name, from_ms, to_ms) AS (${list(asked.ranges)}),
          used AS (
            SELECT ${keys('s')}, s.calls, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.cost_nano, s.saved_nano, s.unpriced
            FROM whole r ${join} usage_slot s ON s.slot_ms >= r.from_ms AND s.slot_ms < r.to_ms${slots}
            UNION ALL
            SELECT ${keys('s')}, s.calls, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.cost_nano, s.saved_nano, s.unpriced
            FROM day r ${join} usage_day s ON s.slot_ms >= r.from_ms AND s.slot_ms < r.to_ms${slots}
            UNION ALL
            SELECT ${keys('c')}, ${ofCall}
            FROM edge r ${join} model_call c ON c.at_ms >= r.from_ms AND c.at_ms < r.to_ms AND c.rolled_up = 1${rows}
            UNION ALL
            SELECT ${keys('c')}, c.calls, c.input_tokens, c.output_tokens, c.cache_read_tokens, c.cache_write_tokens, c.cost_nano, c.saved_nano, c.unpriced
            FROM edge r ${join} usage_past c ON c.slot_ms >= r.from_ms AND c.slot_ms < r.to_ms${rows}
            UNION ALL
            SELECT ${keys('c')}, ${ofCall}
            FROM model_call c ${join} wanted r ON +c.at_ms >= r.from_ms AND +c.at_ms < r.to_ms${rows} WHERE c.rolled_up = 0
          ),
          grouped AS (
            SELECT key1, key2, sum(calls) AS calls, sum(input_tokens) AS "inputTokens", sum(output_tokens) AS "outputTokens",
              sum(cache_read_tokens) AS "cacheReadTokens", sum(cache_write_tokens) AS "cacheWriteTokens",
              sum(cost_nano) AS "costNano", sum(saved_nano) AS "savedNano", sum(unpriced) AS unpriced
            FROM used GROUP BY key1, key2
          )
        SELECT *, count(*) OVER () AS groups, sum(calls) OVER () AS all_calls,
          sum("inputTokens") OVER () AS "all_inputTokens", sum("outputTokens") OVER () AS "all_outputTokens",
          sum("cacheReadTokens") OVER () AS "all_cacheReadTokens", sum("cacheWriteTokens") OVER () AS "all_cacheWriteTokens",
          sum("costNano") OVER () AS "all_costNano", sum("savedNano") OVER () AS "all_savedNano", sum(unpriced) OVER () AS all_unpriced
        FROM grouped
        ORDER BY ${asked.groupBy.includes('day') ? sql`${sql.ref(asked.groupBy[0] === 'day' ? 'key1' : 'key2')}, ` : sql``} "costNano" DESC, "inputTokens" + "outputTokens" DESC, key1 NULLS FIRST, key2 NULLS FIRST
        LIMIT ${asked.limit}`;
      return raw(db, all);
    });
    const [first] = found;
    const totals: UsageSums = {
      calls: first?.all_calls ?? 0,
      inputTokens: first?.all_inputTokens ?? 0,
      outputTokens: first?.all_outputTokens ?? 0,
      cacheReadTokens: first?.all_cacheReadTokens ?? 0,
      cacheWriteTokens: first?.all_cacheWriteTokens ?? 0,
      costNano: first?.all_costNano ?? 0,
      savedNano: first?.all_savedNano ?? 0,
      unpriced: first?.all_unpriced ?? 0,
    };
    return { rows: found.map(usageRow), groups: first?.groups ?? 0, totals };
  },
);

function usageRow(row: UsageRow): UsageRow {
  const { key1, key2, calls, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costNano, savedNano, unpriced } = row;
  return { key1, key2, calls, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costNano, savedNano, unpriced };
}

interface Parts {
  readonly days: readonly UsageRange[];
  readonly slots: readonly UsageRange[];
  readonly rows: readonly UsageRange[];
}

function rowsOnly(ranges: readonly UsageRange[]): Parts {
  return { days: [], slots: [], rows: ranges };
}

/** Splits each range into whole days of UTC, whole hours before and after them, and the remainders. */
function divide(ranges: readonly UsageRange[]): Parts {
  const hours = wholePartsOf(ranges, slotMs);
  const days = wholePartsOf(hours.whole, dayMs);
  return { days: days.whole, slots: days.rest, rows: hours.rest };
}

function wholePartsOf(
  ranges: readonly UsageRange[],
  lengthMs: number,
): { readonly whole: readonly UsageRange[]; readonly rest: readonly UsageRange[] } {
  const whole: UsageRange[] = [];
  const rest: UsageRange[] = [];
  for (const { name, fromMs, toMs } of ranges) {
    const from = Math.ceil(fromMs / lengthMs) * lengthMs;
    const to = Math.floor(toMs / lengthMs) * lengthMs;
    if (from >= to) {
      rest.push({ name, fromMs, toMs });
      continue;
    }
    whole.push({ name, fromMs: from, toMs: to });
    if (fromMs < from) rest.push({ name, fromMs, toMs: from });
    if (to < toMs) rest.push({ name, fromMs: to, toMs });
  }
  return { whole, rest };
}

export const budgetOperations = [usedSince, usedByPrincipals, succeededCalls, rollUp, usageReport];
