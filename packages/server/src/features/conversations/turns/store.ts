import type { TurnOrigin } from '@gatehouse/contract';
import type { OnConflictBuilder } from 'kysely';
import type { CallRecord } from '../../../runtime/turn.ts';
import { AppError } from '../../../kernel/app-error.ts';
import { type BulkColumns, selectBulk, toBulkRows } from '../../../kernel/db/bulk-rows.ts';
import { operation, type OperationCall, query, type QueryTools, type Tx } from '../../../kernel/db/operation.ts';
import type { Tables } from '../../../kernel/db/tables.ts';
import { idBefore } from '../../../kernel/ids.ts';
import { ofDeadBoot, whileLive } from '../../../kernel/owners.ts';
import type { NewMessages } from '../sessions/api.ts';

export type TurnState = 'accepted' | 'running' | 'completed' | 'failed' | 'aborted' | 'unknown';

export interface TurnRow {
  readonly id: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly principalId: string;
  /** The operation, for background work. */
  readonly origin: TurnOrigin | CallRecord['operation'];
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
  /** The boot that runs it, or ran it. */
  readonly bootId: string;
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

/** `isRefused`: the boot is dead, and only what the calls cost is stored. */
export interface TurnCommitted {
  readonly created: boolean;
  readonly isRefused?: true;
}

const turnColumns = [
  'id',
  'conversationRef',
  'sessionKey',
  'agentId',
  'principalId',
  'origin',
  'state',
  'finishReason',
  'failureKind',
  'model',
  'steps',
  'inputTokens',
  'outputTokens',
  'costNano',
  'reservedNano',
  'traceId',
  'startedAtMs',
  'endedAtMs',
  'bootId',
] as const;

const written = (sql: QueryTools<TurnRow>['sql']) => ({
  state: sql<TurnState>`excluded.state`,
  finishReason: sql<string | null>`excluded.finish_reason`,
  failureKind: sql<string | null>`excluded.failure_kind`,
  model: sql<string>`excluded.model`,
  steps: sql<number>`excluded.steps`,
  inputTokens: sql<number>`excluded.input_tokens`,
  outputTokens: sql<number>`excluded.output_tokens`,
  costNano: sql<number>`excluded.cost_nano`,
  reservedNano: sql<number | null>`excluded.reserved_nano`,
  endedAtMs: sql<number | null>`excluded.ended_at_ms`,
});

/** Inserts a turn; a second write of the same turn ends its open row. */
const upsertTurn = query<TurnRow>(({ db, sql, each }) =>
  db
    .insertInto('turn')
    .values(each(turnColumns))
    .onConflict((conflict) => conflict.column('id').doUpdateSet(written(sql))),
);

function endOwnRow(conflict: OnConflictBuilder<Tables, 'turn'>, sql: QueryTools<TurnRow>['sql']) {
  return conflict
    .column('id')
    .doUpdateSet(written(sql))
    .where('turn.endedAtMs', 'is', null)
    .where(sql<boolean>`turn.boot_id = excluded.boot_id`);
}

/** The same, unless the boot is dead or has not left the row open: what a dead boot left is ended by who claimed it. */
const upsertOwnTurn = query<TurnRow>(({ db, sql, p, each }) =>
  db
    .insertInto('turn')
    .columns(turnColumns)
    .expression(
      db.selectNoFrom(Object.entries(each(turnColumns)).map(([name, value]) => sql`${value}`.as(name))).where(whileLive({ db, sql }, p('bootId'))),
    )
    .onConflict((conflict) => endOwnRow(conflict, sql)),
);

/** Identifies whose calls are booked: a turn, or background work. */
export interface CallsOf {
  readonly turnId: string;
  readonly agentId: string;
  readonly principalId: string;
  /** The stored conversation to whose totals the calls are added; null for those without stored messages. */
  readonly conversationRef: string | null;
}

const insertCall = query<ModelCallRow & CallsOf>(({ db, each }) =>
  db
    .insertInto('modelCall')
    .values(
      each([
        'turnId',
        'conversationRef',
        'agentId',
        'principalId',
        'provider',
        'model',
        'operation',
        'outcome',
        'inputTokens',
        'outputTokens',
        'cacheReadTokens',
        'cacheWriteTokens',
        'estimated',
        'costNano',
        'savedNano',
        'latencyMs',
        'responseId',
        'atMs',
      ]),
    ),
);

/** Stores the turn row and one row per model call, without a check of its boot. Part of the operations of durable turns, which have a fence. */
export async function recordTurn(tx: Tx, turn: TurnRow, calls: readonly ModelCallRow[], conversationRef: string | null): Promise<void> {
  const of = { turnId: turn.id, agentId: turn.agentId, principalId: turn.principalId, conversationRef };
  await Promise.all([tx.run(upsertTurn, turn), recordCalls(tx, of, calls)]);
}

const turnTypes: BulkColumns<TurnRow> = {
  id: 'text',
  conversationRef: 'text',
  sessionKey: 'text',
  agentId: 'text',
  principalId: 'text',
  origin: 'text',
  state: 'text',
  finishReason: 'text',
  failureKind: 'text',
  model: 'text',
  steps: 'bigint',
  inputTokens: 'bigint',
  outputTokens: 'bigint',
  costNano: 'bigint',
  reservedNano: 'bigint',
  traceId: 'text',
  startedAtMs: 'bigint',
  endedAtMs: 'bigint',
  bootId: 'text',
};

const callTypes: BulkColumns<ModelCallRow & CallsOf> = {
  turnId: 'text',
  conversationRef: 'text',
  agentId: 'text',
  principalId: 'text',
  provider: 'text',
  model: 'text',
  operation: 'text',
  outcome: 'text',
  inputTokens: 'bigint',
  outputTokens: 'bigint',
  cacheReadTokens: 'bigint',
  cacheWriteTokens: 'bigint',
  estimated: 'bigint',
  costNano: 'bigint',
  savedNano: 'bigint',
  latencyMs: 'bigint',
  responseId: 'text',
  atMs: 'bigint',
};
const callColumns = Object.keys(callTypes) as (keyof typeof callTypes)[];

const upsertOwnTurns = query<{ rows: string }>(({ db, sql, p }) =>
  db
    .insertInto('turn')
    .columns(turnColumns)
    .expression(sql<never>`${selectBulk({ sql }, turnTypes, p('rows', 'text'))} WHERE ${whileLive({ db, sql }, sql<string>`bulk."bootId"`)}`)
    .onConflict((conflict) => endOwnRow(conflict, sql)),
);

const insertCalls = query<{ rows: string }>(({ db, sql, p }) =>
  db
    .insertInto('modelCall')
    .columns(callColumns)
    .expression(selectBulk({ sql }, callTypes, p('rows', 'text'))),
);

/**
 * Does what `recordOwnTurn` does, for several turns without stored messages at once; fails when one of them is refused. Part of
 * `commitTurn`.
 */
export async function recordOwnTurns(tx: Tx, commits: readonly Pick<TurnCommit, 'turn' | 'calls'>[]): Promise<void> {
  const turns = commits.map(({ turn }) => turn);
  const calls = commits.flatMap(({ turn, calls: ofTurn }) =>
    ofTurn.map((call) => ({ ...call, turnId: turn.id, agentId: turn.agentId, principalId: turn.principalId, conversationRef: null })),
  );
  // Sent together: the second does not depend on the answer to the first.
  const [{ changes }] = await Promise.all([
    tx.run(upsertOwnTurns, { rows: toBulkRows(turnTypes, turns) }),
    calls.length === 0 ? undefined : tx.run(insertCalls, { rows: toBulkRows(callTypes, calls) }),
  ]);
  if (changes < turns.length) throw takenOver();
}

/** Stores one row per model call. Part of `bookWork`. */
export async function recordCalls(tx: Tx, of: CallsOf, calls: readonly ModelCallRow[]): Promise<void> {
  // Sent together: none depends on the answer to another.
  await Promise.all(calls.map((call) => tx.run(insertCall, { ...call, ...of })));
}

/** Stores the turn row and one row per model call; false, and nothing, when its boot is dead. Part of `openTurn` and `commitTurn`. */
export async function recordOwnTurn(tx: Tx, turn: TurnRow, calls: readonly ModelCallRow[], conversationRef: string | null): Promise<boolean> {
  if ((await tx.run(upsertOwnTurn, turn)).changes === 0) return false;
  if (calls.length > 0) await recordCalls(tx, { turnId: turn.id, agentId: turn.agentId, principalId: turn.principalId, conversationRef }, calls);
  return true;
}

const costOf = query<{ id: string }, { costNano: number | null }>(({ db, p }) => db.selectFrom('turn').select('costNano').where('id', '=', p('id')));

/** Returns whether the calls of a refused turn were charged when its boot was claimed. Part of `commitTurn`. */
export async function isCharged(tx: Tx, id: string): Promise<boolean> {
  return ((await tx.get(costOf, { id }))?.costNano ?? null) !== null;
}

/** The error of a daemon that was taken over while it was frozen or cut off. */
export const takenOver = () => new AppError('unavailable', 'Another daemon has taken over the work of this one');

const reserveQuery = query<{ id: string; reservedNano: number; model: string }>(({ db, p }) =>
  db
    .updateTable('turn')
    .set({ reservedNano: p('reservedNano'), model: p('model') })
    .where('id', '=', p('id'))
    .where('endedAtMs', 'is', null),
);

interface Reserve {
  readonly id: string;
  readonly reservedNano: number;
  readonly model: string;
}

/** Stores the possible cost of an open turn; returns whether it is open. Part of `reserveForDurable`. */
export async function setReserve(tx: Tx, input: Reserve): Promise<boolean> {
  return (await tx.run(reserveQuery, input)).changes > 0;
}

/** Reserves another call of a turn under a budget in money; throws `unavailable` when the claim of its boot has ended the turn. */
export const reserveForTurn = operation('turns.reserve', async (tx, input: Reserve): Promise<void> => {
  if (!(await setReserve(tx, input))) throw takenOver();
});

const deleteTurn = query<{ id: string }>(({ db, p }) => db.deleteFrom('turn').where('id', '=', p('id')));

/** Deletes the row of running background work; returns whether there was one. Part of `bookWork`. */
export async function forgetTurn(tx: Tx, id: string): Promise<boolean> {
  return (await tx.run(deleteTurn, { id })).changes > 0;
}

const openTurns = query<Record<string, never>, TurnRow>(({ db, sql }) =>
  db.selectFrom('turn').select(turnColumns).where('state', 'in', ['accepted', 'running']).where(ofDeadBoot(sql, 'turn.bootId')),
);

/** Returns the open turns of dead boots. Part of `abortOpenTurns`. */
export function findOpenTurns(tx: Tx): Promise<TurnRow[]> {
  return tx.all(openTurns, {});
}

const adopt = query<{ id: string; bootId: string }>(({ db, p }) =>
  db
    .updateTable('turn')
    .set({ bootId: p('bootId') })
    .where('id', '=', p('id')),
);

/** Records that a boot continues a turn. Part of `openDurableTurn`. */
export async function adoptTurn(tx: Tx, input: { readonly id: string; readonly bootId: string }): Promise<void> {
  await tx.run(adopt, input);
}

const endOne = query<{ id: string; state: TurnState; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('turn')
    .set({
      state: p('state'),
      finishReason: 'aborted',
      endedAtMs: p('atMs'),
      costNano: sql<number>`coalesce(cost_nano + reserved_nano, reserved_nano, cost_nano)`,
      reservedNano: null,
    })
    .where('id', '=', p('id'))
    .where(sql<boolean>`state in ('accepted', 'running')`),
);

/** Ends an open turn, at its reserved cost, that does not end itself. Part of `settleWithoutTurn` and `abortOpenTurns`. */
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
      let from = db.selectFrom('modelCall').where('rolledUp', 'in', [0, 1]).where('atMs', '>=', input.sinceMs);
      if (input.agentIds !== null) from = from.where('agentId', 'in', input.agentIds);
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

const turnById = query<{ id: string }, TurnRow>(({ db, p }) => db.selectFrom('turn').select(turnColumns).where('id', '=', p('id')));

/** Returns the row of a turn. */
export const findTurn = operation('turns.find', async (tx, input: { readonly id: string }): Promise<TurnRow | undefined> => tx.get(turnById, input));

// Ids are ordered by time, so no index of times is needed to find the oldest.
const old = query<{ beforeId: string; beforeMs: number; limit: number }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('turn')
    .select('id')
    .where('id', '>=', 'tn_')
    .where('id', '<', p('beforeId'))
    .where('endedAtMs', '<', p('beforeMs'))
    .where(sql<boolean>`not exists (select 1 from durable_turn where durable_turn.turn_id = turn.id)`)
    .orderBy('id')
    .limit(p('limit'))
    .forUpdate()
    .skipLocked(),
);

/** Deletes some turns that ended before a time; returns how many. Their messages belong to the conversation, and stay. */
export const pruneTurns = operation('turns.prune', async (tx, input: { readonly beforeMs: number; readonly limit: number }): Promise<number> => {
  const ids = (await tx.all(old, { ...input, beforeId: idBefore('tn', input.beforeMs) })).map(({ id }) => id);
  if (ids.length > 0) await tx.build((db) => db.deleteFrom('turn').where('id', 'in', ids));
  return ids.length;
});

const oldestOf = query<object, { atMs: number }>(({ db }) =>
  db.selectFrom('turn').select('startedAtMs as atMs').where('id', '>=', 'tn_').orderBy('id').limit(1),
);

/** Returns the time of the oldest turn that is kept. */
export const oldestTurn = operation('turns.oldest', async (tx): Promise<number | undefined> => (await tx.get(oldestOf, {}))?.atMs);

export const turnOperations = [reserveForTurn, cacheStats, findTurn, pruneTurns, oldestTurn];
