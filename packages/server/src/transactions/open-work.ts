import { isOpenWork } from '../features/unattended/durable/store.ts';
import { growUsage } from '../features/conversations/sessions/store.ts';
import { toCallRow } from '../features/conversations/turns/running/turn-row.ts';
import { addLostCost, dropLedger, markFirstCall, workOf } from '../features/conversations/turns/durable/ledger-store.ts';
import {
  endOpenTurn,
  findOpenTurns,
  forgetTurn,
  type ModelCallRow,
  recordCalls,
  recordOwnTurn,
  takenOver,
  type TurnRow,
} from '../features/conversations/turns/store.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';
import type { WorkBooking, WorkOpening } from '../features/access/budgets/api.ts';

/** Opens the row of background work under a cap in money; its `origin` is the operation. */
export const openWork = operation('work.open', async (tx, { operation: origin, conversationRef, ...work }: WorkOpening): Promise<void> => {
  const turn: TurnRow = {
    ...work,
    origin,
    conversationRef: conversationRef ?? '',
    sessionKey: '',
    state: 'running',
    finishReason: null,
    failureKind: null,
    steps: 0,
    inputTokens: 0,
    outputTokens: 0,
    costNano: null,
    endedAtMs: null,
  };
  if (!(await recordOwnTurn(tx, turn, [], null))) throw takenOver();
});

/** Stores the calls of background work, and adds them to the totals of its conversation. */
export const bookWork = operation(
  'work.book',
  async (tx, { id, agentId, principalId, conversationRef, opened, calls }: WorkBooking): Promise<void> => {
    // Its reserve was charged as spent when its boot was claimed.
    if (opened && !(await forgetTurn(tx, id))) return;
    await bookCalls(tx, { id, agentId, principalId, conversationRef }, calls.map(toCallRow));
  },
);

/**
 * Ends the open turns of dead boots, once: those bound to a request died with the process that ran them. What they held under a cap in money is charged
 * as spent, since nobody knows how much of it was (decisions §7).
 */
export const abortOpenTurns = operation('turns.abortOpen', async (tx, input: { readonly atMs: number }): Promise<number> => {
  const open = await findOpenTurns(tx);
  let ended = 0;
  for (const turn of open) {
    const workId = await workOf(tx, turn.id);
    if (turn.reservedNano !== null) {
      if (workId !== undefined && turn.reservedNano > 0) await markFirstCall(tx, turn.id);
      await bookCalls(tx, turn, [lostCall(turn, turn.reservedNano)]);
    }
    if (isWork(turn)) {
      await forgetTurn(tx, turn.id);
      continue;
    }
    // A turn that belongs to work continues with it.
    if (workId !== undefined && (await isOpenWork(tx, workId))) {
      if (turn.reservedNano !== null) await addLostCost(tx, { turnId: turn.id, costNano: turn.reservedNano });
      continue;
    }
    await endOpenTurn(tx, { id: turn.id, state: 'aborted', ...input });
    if (workId !== undefined) await dropLedger(tx, turn.id);
    ended += 1;
  }
  return ended;
});

const isWork = ({ id }: TurnRow) => id.startsWith('wk_');

/** Stores one row per call, and adds the figures to the totals of the conversation, if it is stored. */
export async function bookCalls(
  tx: Tx,
  of: { readonly id: string; readonly agentId: string; readonly principalId: string; readonly conversationRef: string | null },
  calls: readonly ModelCallRow[],
): Promise<void> {
  const sum = (part: (call: ModelCallRow) => number | null) => calls.reduce((total, call) => total + (part(call) ?? 0), 0);
  const { id: turnId, agentId, principalId, conversationRef: ref } = of;
  const usage = {
    inputTokens: sum((call) => call.inputTokens),
    outputTokens: sum((call) => call.outputTokens),
    costNano: sum((call) => call.costNano),
  };
  const isStored = ref !== null && ref !== '' && (await growUsage(tx, { ref, ...usage }));
  await recordCalls(tx, { turnId, agentId, principalId, conversationRef: isStored ? ref : null }, calls);
}

/** Origins whose turns are charged under their own names. */
const namedLikeOrigin: ReadonlySet<string> = new Set(['cron', 'heartbeat', 'subagent']);

function lostCall(turn: TurnRow, costNano: number): ModelCallRow {
  const [provider = '', ...rest] = (turn.model ?? '').split('/');
  return {
    provider,
    model: rest.join('/'),
    operation: isWork(turn) || namedLikeOrigin.has(turn.origin) ? turn.origin : 'interactive',
    outcome: 'error',
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    estimated: true,
    costNano,
    savedNano: null,
    latencyMs: 0,
    responseId: null,
    atMs: turn.startedAtMs,
  };
}
