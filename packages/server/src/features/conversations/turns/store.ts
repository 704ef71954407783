import { operation, type OperationCall, query, type Tx } from '../../../kernel/db/operation.ts';
import type { NewMessages } from '../sessions/api.ts';

export type TurnState = 'accepted' | 'running' | 'completed' | 'failed' | 'aborted' | 'unknown';

export interface TurnRow {
  readonly id: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly origin: string;
  readonly state: TurnState;
  readonly finishReason: string | null;
  readonly failureKind: string | null;
  readonly model: string | null;
  readonly steps: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** 1e-9 US dollars; null when a price is unknown. */
  readonly costNano: number | null;
  /** Maximum possible cost of a running turn so far, in 1e-9 US dollars; null without a budget in money, and once ended. */
  readonly reservedNano: number | null;
  readonly traceId: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
}

export interface ModelCallRow {
  readonly provider: string;
  readonly model: string;
  readonly operation: string;
  readonly outcome: 'ok' | 'error';
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly estimated: boolean;
  readonly costNano: number | null;
  /** Savings from cached input, in 1e-9 US dollars. */
  readonly savedNano: number | null;
  readonly latencyMs: number;
  readonly responseId: string | null;
  readonly atMs: number;
}

/** Data stored before a turn runs a run-once operation. */
export interface TurnOpening {
  readonly turn: TurnRow;
  /** Operations of others that commit with it. */
  readonly alongside?: readonly OperationCall[] | undefined;
}

/** Data stored at the end of a turn bound to a request. */
export interface TurnCommit {
  readonly turn: TurnRow;
  readonly calls: readonly ModelCallRow[];
  /** Null for turns whose messages are not stored (`/v1`). */
  readonly conversation: NewMessages | null;
  /** Operations of others that commit with it. */
  readonly alongside?: readonly OperationCall[] | undefined;
}

/** Inserts a turn; a second write of the same turn ends its open row. */
const upsertTurn = query<TurnRow>(({ db, sql, p }) =>
  db
    .insertInto('turn')
    .values({
      id: p('id'),
      conversation_ref: p('conversationRef'),
      session_key: p('sessionKey'),
      agent_id: p('agentId'),
      principal_id: p('principalId'),
      origin: p('origin'),
      state: p('state'),
      finish_reason: p('finishReason'),
      failure_kind: p('failureKind'),
      model: p('model'),
      steps: p('steps'),
      input_tokens: p('inputTokens'),
      output_tokens: p('outputTokens'),
      cost_nano: p('costNano'),
      reserved_nano: p('reservedNano'),
      trace_id: p('traceId'),
      started_at_ms: p('startedAtMs'),
      ended_at_ms: p('endedAtMs'),
    })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet({
        state: sql`excluded.state`,
        finish_reason: sql`excluded.finish_reason`,
        failure_kind: sql`excluded.failure_kind`,
        model: sql`excluded.model`,
        steps: sql`excluded.steps`,
        input_tokens: sql`excluded.input_tokens`,
        output_tokens: sql`excluded.output_tokens`,
        cost_nano: sql`excluded.cost_nano`,
        reserved_nano: sql`excluded.reserved_nano`,
        ended_at_ms: sql`excluded.ended_at_ms`,
      }),
    ),
);

/** Identifies whose calls are booked: a turn, or background work. */
export interface CallsOf {
  readonly turnId: string;
  readonly agentId: string;
  readonly principalId: string;
  /** The stored conversation to whose totals the calls are added; null for those without stored messages. */
  readonly conversationRef: string | null;
}

const insertCall = query<ModelCallRow & CallsOf>(({ db, p }) =>
  db.insertInto('model_call').values({
    turn_id: p('turnId'),
    conversation_ref: p('conversationRef'),
    agent_id: p('agentId'),
    principal_id: p('principalId'),
    provider: p('provider'),
    model: p('model'),
    operation: p('operation'),
    outcome: p('outcome'),
    input_tokens: p('inputTokens'),
    output_tokens: p('outputTokens'),
    cache_read_tokens: p('cacheReadTokens'),
    cache_write_tokens: p('cacheWriteTokens'),
    estimated: p('estimated'),
    cost_nano: p('costNano'),
    saved_nano: p('savedNano'),
    latency_ms: p('latencyMs'),
    response_id: p('responseId'),
    at_ms: p('atMs'),
  }),
);

/** Stores the turn row and one row per model call. Part of `openTurn` and `commitTurn`. */
export async function recordTurn(tx: Tx, turn: TurnRow, calls: readonly ModelCallRow[], conversationRef: string | null): Promise<void> {
  await tx.run(upsertTurn, turn);
  if (calls.length > 0) await recordCalls(tx, { turnId: turn.id, agentId: turn.agentId, principalId: turn.principalId, conversationRef }, calls);
}

/** Stores one row per model call. Part of `bookWork`. */
export async function recordCalls(tx: Tx, of: CallsOf, calls: readonly ModelCallRow[]): Promise<void> {
  for (const call of calls) await tx.run(insertCall, { ...call, ...of });
}

const reserveQuery = query<{ id: string; reservedNano: number; model: string }>(({ db, p }) =>
  db
    .updateTable('turn')
    .set({ reserved_nano: p('reservedNano'), model: p('model') })
    .where('id', '=', p('id')),
);

/** Stores the possible cost of an open turn. Part of `reserveForDurable`. */
export async function setReserve(tx: Tx, input: { readonly id: string; readonly reservedNano: number; readonly model: string }): Promise<void> {
  await tx.run(reserveQuery, input);
}

/** Reserves another call of a turn under a budget in money. */
export const reserveForTurn = operation('turns.reserve', setReserve);

const deleteTurn = query<{ id: string }>(({ db, p }) => db.deleteFrom('turn').where('id', '=', p('id')));

/** Deletes the row of running background work. Part of `bookWork`. */
export async function forgetTurn(tx: Tx, id: string): Promise<void> {
  await tx.run(deleteTurn, { id });
}

const openTurns = query<Record<string, never>, TurnRow>(({ db }) =>
  db
    .selectFrom('turn')
    .select([
      'id',
      'conversation_ref as conversationRef',
      'session_key as sessionKey',
      'agent_id as agentId',
      'principal_id as principalId',
      'origin',
      'state',
      'finish_reason as finishReason',
      'failure_kind as failureKind',
      'model',
      'steps',
      'input_tokens as inputTokens',
      'output_tokens as outputTokens',
      'cost_nano as costNano',
      'reserved_nano as reservedNano',
      'trace_id as traceId',
      'started_at_ms as startedAtMs',
      'ended_at_ms as endedAtMs',
    ])
    .where('state', 'in', ['accepted', 'running']),
);

/** Returns the turns that were running when the process died. Part of `abortOpenTurns`. */
export function findOpenTurns(tx: Tx): Promise<TurnRow[]> {
  return tx.all(openTurns, {});
}

/** Ends open turns at their reserved cost, except those that resume. Part of `abortOpenTurns`. */
export async function endOpenTurns(tx: Tx, { atMs, kept }: { readonly atMs: number; readonly kept: readonly string[] }): Promise<void> {
  await tx.build((db, sql) => {
    const open = db
      .updateTable('turn')
      .set({
        state: 'aborted',
        finish_reason: 'aborted',
        ended_at_ms: atMs,
        cost_nano: sql`coalesce(cost_nano + reserved_nano, reserved_nano, cost_nano)`,
        reserved_nano: null,
      })
      .where(sql<boolean>`state in ('accepted', 'running')`);
    return kept.length === 0 ? open : open.where('id', 'not in', kept);
  });
}

const endOne = query<{ id: string; state: TurnState; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('turn')
    .set({
      state: p('state'),
      finish_reason: 'aborted',
      ended_at_ms: p('atMs'),
      cost_nano: sql`coalesce(cost_nano + reserved_nano, reserved_nano, cost_nano)`,
      reserved_nano: null,
    })
    .where('id', '=', p('id'))
    .where(sql<boolean>`state in ('accepted', 'running')`),
);

/** Ends a turn whose work ends without it. Part of `endLeftover`. */
export async function endOpenTurn(
  tx: Tx,
  input: { readonly id: string; readonly state: 'aborted' | 'unknown'; readonly atMs: number },
): Promise<void> {
  await tx.run(endOne, input);
}

export interface CacheStatsRow {
  readonly provider: string;
  readonly model: string;
  readonly callCount: number;
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly costNano: number;
  readonly savedNano: number;
}

export const cacheStats = operation(
  'turns.cacheStats',
  async (tx, input: { readonly sinceMs: number; readonly agentIds: readonly string[] | null }): Promise<CacheStatsRow[]> =>
    tx.build<CacheStatsRow>((db, sql) => {
      let from = db.selectFrom('model_call').where('at_ms', '>=', input.sinceMs);
      if (input.agentIds !== null) from = from.where('agent_id', 'in', input.agentIds);
      return from
        .select([
          'provider',
          'model',
          sql<number>`count(*)`.as('callCount'),
          sql<number>`sum(input_tokens)`.as('inputTokens'),
          sql<number>`sum(cache_read_tokens)`.as('cacheReadTokens'),
          sql<number>`sum(cache_write_tokens)`.as('cacheWriteTokens'),
          sql<number>`coalesce(sum(cost_nano), 0)`.as('costNano'),
          sql<number>`coalesce(sum(saved_nano), 0)`.as('savedNano'),
        ])
        .groupBy(['provider', 'model'])
        .orderBy('provider')
        .orderBy('model');
    }),
);

export const turnOperations = [reserveForTurn, cacheStats];
