import type { CallsOf, MadeTurn, MadeWork } from '../features/access/budgets/api.ts';
import { growRoot } from '../features/delegation/autonomy/store.ts';
import { growNode, keepNodeSummary } from '../features/delegation/graph/store.ts';
import { growRun } from '../features/delegation/subagents/store.ts';
import { growUsage } from '../features/conversations/sessions/store.ts';
import { markFirstCall, workOf } from '../features/conversations/turns/durable/ledger-store.ts';
import { toCallRow } from '../features/conversations/turns/running/turn-row.ts';
import { findTurn, type ModelCallRow, recordCalls, recordTurn } from '../features/conversations/turns/store.ts';
import { query, type Tx } from '../kernel/db/operation.ts';

/** Turns of one query: as many as it has parameters for. */
const chunk = 200;

/** Stores one row per call, and adds the figures to what the calls belong to, if that is stored: conversation, root run, run, and node. */
export async function bookCalls(tx: Tx, of: CallsOf, calls: readonly ModelCallRow[]): Promise<void> {
  const isStored = await growBy(tx, of.conversationRef, calls);
  await record(tx, { ...of, conversationRef: isStored ? of.conversationRef : null }, calls);
}

export interface NotedWork {
  readonly made: readonly MadeWork[];
  /** Earlier calls are left out: retention may have deleted their rows. */
  readonly keptSinceMs: number;
  readonly atMs: number;
}

/** What was noted of one turn: its calls that were not booked, and whether another one had begun. */
export interface Missing {
  readonly calls: readonly ModelCallRow[];
  readonly isInFlight: boolean;
}

/**
 * Books the calls that an earlier process noted and did not book, and returns them by their turn; `isOpen`: the turn waits for its end by the
 * caller. A noted call is booked if a row of its turn has the same figures. Part of `abortOpenTurns`.
 */
export async function bookMadeCalls(
  tx: Tx,
  { made, keptSinceMs, atMs: endedAtMs }: NotedWork,
  isOpen: (id: string) => boolean,
): Promise<ReadonlyMap<string, Missing>> {
  const noted = made.map(({ calls, ...work }) => ({ ...work, calls: calls.map(toCallRow).filter(({ atMs }) => atMs >= keptSinceMs) }));
  const missing = new Map<string, Missing>();
  for (let from = 0; from < noted.length; from += chunk) {
    const some = noted.slice(from, from + chunk);
    const booked = await readBooked(tx, some);
    for (const { calls, isInFlight, answer, ...of } of some) {
      if (answer !== undefined) await keepAnswer(tx, of, answer);
      const left = without(calls, booked.get(of.id) ?? []);
      const isCounted = left.length > 0 && !isOpen(of.id) && (await isChargedElsewhere(tx, of.id));
      missing.set(of.id, { calls: isCounted ? [] : left, isInFlight });
      if (left.length > 0 && !isCounted) await bookMissing(tx, of, left, endedAtMs);
    }
  }
  return missing;
}

const lost = query<{ turnId: string; atMs: number }, { id: number }>(({ db, p }) =>
  db
    .selectFrom('modelCall')
    .select('id')
    .where('rolledUp', 'in', [0, 1])
    .where('atMs', '=', p('atMs'))
    .where('turnId', '=', p('turnId'))
    .where('outcome', '=', 'error')
    .where('inputTokens', '=', 0)
    .where('outputTokens', '=', 0)
    .where('costNano', '>', 0)
    .limit(1),
);

/** Returns whether another daemon, which took over this turn, charged its reserve instead of its calls. */
async function isChargedElsewhere(tx: Tx, turnId: string): Promise<boolean> {
  const turn = await findTurn.run(tx, { id: turnId });
  return turn !== undefined && (await tx.get(lost, { turnId, atMs: turn.startedAtMs })) !== undefined;
}

async function bookMissing(tx: Tx, of: CallsOf, calls: readonly ModelCallRow[], endedAtMs: number): Promise<void> {
  if ((await workOf(tx, of.id)) !== undefined) {
    // Linked to the conversation by the commit of the turn.
    await markFirstCall(tx, of.id);
    return bookCalls(tx, of, calls);
  }
  // The conversation may have had no other turn yet: reports of a session find the calls nevertheless.
  await growBy(tx, of.conversationRef, calls);
  await recordKilled(tx, of, calls, endedAtMs);
  await record(tx, { ...of, rootRunId: of.rootRunId ?? rootOfTurn(of.id, of.turn), runId: of.runId ?? of.turn?.refs?.['runId'] }, calls);
}

/** Stores the turn that made the calls as aborted, unless it has a row: reports by its session key find the calls through it. */
async function recordKilled(tx: Tx, { id, agentId, principalId, turn }: CallsOf, calls: readonly ModelCallRow[], endedAtMs: number): Promise<void> {
  if (turn === undefined || (await findTurn.run(tx, { id })) !== undefined) return;
  const last = calls.at(-1);
  const row = {
    ...turn,
    id,
    agentId,
    principalId,
    ...sumOf(calls),
    ...(calls.some(({ costNano }) => costNano === null) && { costNano: null }),
    state: 'aborted' as const,
    finishReason: 'aborted',
    failureKind: null,
    model: last === undefined ? null : `${last.provider}/${last.model}`,
    steps: calls.filter(({ outcome }) => outcome === 'ok').length,
    reservedNano: null,
    endedAtMs,
  };
  await recordTurn(tx, row, [], null);
}

/** Returns the root run of a turn that was bound to a request: its own, unless it was noted. Most of them have no row. */
export function rootOfTurn(turnId: string, noted?: MadeTurn): string {
  return noted?.rootRunId ?? `root-turn-${turnId}`;
}

/** Stores the answer with the node of a graph that it summarizes, so that nobody pays for it again. */
export async function keepAnswer(tx: Tx, { summarizes }: Pick<CallsOf, 'summarizes'>, text: string): Promise<void> {
  if (summarizes !== undefined) await keepNodeSummary(tx, { ...summarizes, text });
}

async function record(
  tx: Tx,
  { id: turnId, agentId, principalId, conversationRef, rootRunId, runId, node }: CallsOf,
  calls: readonly ModelCallRow[],
): Promise<void> {
  await recordCalls(tx, { turnId, agentId, principalId, conversationRef }, calls);
  if (rootRunId === undefined || calls.length === 0) return;
  const sums = amountOf(calls);
  // A run before its root, as all others lock them.
  if (runId !== undefined) await growRun(tx, { id: runId, ...sums });
  if (node !== undefined) await growNode(tx, { ...node, ...sums });
  await growRoot(tx, { id: rootRunId, ...sums });
}

/** Returns whether there is such a conversation. */
async function growBy(tx: Tx, ref: string | null, calls: readonly ModelCallRow[]): Promise<boolean> {
  return ref !== null && ref !== '' && (await growUsage(tx, { ref, ...sumOf(calls) }));
}

/** Returns what calls add to a root run. */
export function amountOf(calls: readonly ModelCallRow[]) {
  const { inputTokens, outputTokens, costNano: nano } = sumOf(calls);
  return { tokens: inputTokens + outputTokens, nano, unpriced: calls.filter(({ costNano }) => costNano === null).length };
}

/** Sums calls; those without a known price cost nothing. */
export function sumOf(calls: readonly ModelCallRow[]) {
  const sum = (part: (call: ModelCallRow) => number | null) => calls.reduce((total, call) => total + (part(call) ?? 0), 0);
  return {
    inputTokens: sum((call) => call.inputTokens),
    outputTokens: sum((call) => call.outputTokens),
    costNano: sum((call) => call.costNano),
  };
}

const compared = [
  'atMs',
  'provider',
  'model',
  'operation',
  'outcome',
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'costNano',
  'responseId',
] as const;
type Compared = Pick<ModelCallRow, (typeof compared)[number]>;

/** Returns the calls that are booked of these turns, in the time of theirs that are noted. */
async function readBooked(
  tx: Tx,
  works: readonly { readonly id: string; readonly calls: readonly ModelCallRow[] }[],
): Promise<Map<string, Compared[]>> {
  const times = works.flatMap(({ calls }) => calls.map(({ atMs }) => atMs));
  const booked = new Map<string, Compared[]>();
  if (times.length === 0) return booked;
  const rows = await tx.build((db) =>
    db
      .selectFrom('modelCall')
      .select(['turnId', ...compared])
      // Both marks, because the index begins with them.
      .where('rolledUp', 'in', [0, 1])
      .where('atMs', '>=', Math.min(...times))
      .where('atMs', '<=', Math.max(...times))
      .where(
        'turnId',
        'in',
        works.map(({ id }) => id),
      ),
  );
  for (const { turnId, ...row } of rows) booked.set(turnId, [...(booked.get(turnId) ?? []), row as Compared]);
  return booked;
}

const keyOf = (call: Compared): string => JSON.stringify(compared.map((name) => call[name]));

/** Returns the calls that are not among the booked ones. */
function without(calls: readonly ModelCallRow[], booked: readonly Compared[]): readonly ModelCallRow[] {
  const counts = new Map<string, number>();
  for (const call of booked) counts.set(keyOf(call), (counts.get(keyOf(call)) ?? 0) + 1);
  return calls.filter((call) => {
    const count = counts.get(keyOf(call)) ?? 0;
    counts.set(keyOf(call), count - 1);
    return count <= 0;
  });
}
