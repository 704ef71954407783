import { bookCalls, bookMadeCalls, keepAnswer, type Missing, type NotedWork, rootOfTurn, sumOf } from './book-calls.ts';
import { addWorkPart, dropWorkPart, takeWorkPart } from '../features/access/budgets/part-store.ts';
import { raiseSpent } from '../features/delegation/autonomy/store.ts';
import { rootOfWork } from '../features/delegation/subagents/store.ts';
import { isOpenWork } from '../features/unattended/durable/store.ts';
import { toCallRow } from '../features/conversations/turns/running/turn-row.ts';
import { addLostUse, dropLedger, markFirstCall, workOf } from '../features/conversations/turns/durable/ledger-store.ts';
import {
  endOpenTurn,
  findOpenTurns,
  forgetTurn,
  type ModelCallRow,
  recordOwnTurn,
  takenOver,
  type TurnRow,
} from '../features/conversations/turns/store.ts';
import { operation } from '../kernel/db/operation.ts';
import type { CallsOf, KilledWork, MadeTurn, MadeWork, WorkBooking, WorkOpening } from '../features/access/budgets/api.ts';
import { restoreTurnMessages } from './restore-turn-messages.ts';

/** Opens the row of background work under a cap in money; its `origin` is the operation. */
export const openWork = operation('work.open', async (tx, { operation: origin, conversationRef, part, ...work }: WorkOpening): Promise<void> => {
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
  if (part !== undefined) await addWorkPart(tx, { workId: work.id, ...part });
});

/** Stores the calls of background work, and adds them to the totals of its conversation and its root run. */
export const bookWork = operation('work.book', async (tx, { opened, calls, answer, ...of }: WorkBooking): Promise<void> => {
  // Its reserve was charged as spent when its boot was claimed.
  if (opened && !(await forgetTurn(tx, of.id))) return;
  if (opened) await dropWorkPart(tx, of.id);
  if (answer !== undefined) await keepAnswer(tx, of, answer);
  await bookCalls(tx, of, calls.map(toCallRow));
});

/** `noted`: calls of which an earlier process of this home knew. */
interface DeadTurns extends Partial<Omit<NotedWork, 'atMs'>> {
  readonly atMs: number;
}

/**
 * Ends the open turns of dead boots, once: those bound to a request died with the process that ran them. Calls that were noted are booked, those of
 * other turns too. What else a turn held under a cap in money is charged as spent, since nobody knows how much of it was (decisions §7).
 */
export const abortOpenTurns = operation('turns.abortOpen', async (tx, { atMs, made = [], keptSinceMs = 0 }: DeadTurns): Promise<AbortedTurns> => {
  const open = await findOpenTurns(tx);
  const ids = new Set(open.map(({ id }) => id));
  const begun = new Map(made.map(({ id, turn }) => [id, turn]));
  const missing = await bookMadeCalls(tx, { made, keptSinceMs, atMs }, (id) => ids.has(id));
  /** What the turns that continue have cost, by their root run. */
  const continued = new Map<string, { readonly tokens: number; readonly nano: number }>();
  const killed = made.flatMap((work) => (ids.has(work.id) ? [] : workWithoutRow(work, missing.get(work.id)?.calls)));
  let ended = 0;
  for (const turn of open) {
    const workId = await workOf(tx, turn.id);
    const found = missing.get(turn.id) ?? unknown;
    const used = sumOf(found.calls);
    const lostNano = lostOf(turn, found, used.costNano);
    if (workId !== undefined && lostNano > 0) await markFirstCall(tx, turn.id);
    // The root of durable work gets it with the rest of its turn.
    const part = isWork(turn) ? await takeWorkPart(tx, turn.id) : workId === undefined ? { rootRunId: rootOfTurn(turn.id, begun.get(turn.id)) } : {};
    if (lostNano > 0) await bookCalls(tx, { ...turn, ...part }, [lostCall(turn, lostNano, begun.get(turn.id))]);
    if (lostNano > 0 || (isWork(turn) && found.calls.length > 0))
      killed.push({
        ...ownerOf(turn),
        traceId: turn.traceId,
        startedAtMs: turn.startedAtMs,
        origin: turn.origin,
        part,
        calls: isWork(turn) ? found.calls : [],
        lostNano,
      });
    if (isWork(turn)) {
      await forgetTurn(tx, turn.id);
      continue;
    }
    if (turn.reservedNano !== null || found.calls.length > 0) {
      const isPriced = found.calls.every(({ costNano }) => costNano !== null);
      await addLostUse(tx, { turnId: turn.id, ...used, costNano: isPriced ? used.costNano + lostNano : null });
    }
    // A turn that belongs to work continues with it.
    if (workId !== undefined && (await isOpenWork(tx, workId))) {
      const rootRunId = (await rootOfWork(tx, workId)) ?? rootOfTurn(turn.id, begun.get(turn.id));
      const { tokens, nano } = continued.get(rootRunId) ?? { tokens: 0, nano: 0 };
      continued.set(rootRunId, {
        tokens: tokens + turn.inputTokens + turn.outputTokens + used.inputTokens + used.outputTokens,
        nano: nano + (turn.costNano ?? 0) + used.costNano + lostNano,
      });
      continue;
    }
    await endOpenTurn(tx, { id: turn.id, state: 'aborted', atMs });
    if (workId !== undefined) await dropLedger(tx, turn.id);
    ended += 1;
  }
  for (const [id, amount] of continued) await raiseSpent(tx, { id, ...amount });
  await restoreTurnMessages(tx, atMs);
  return { ended, killed };
});

/** `ended`: how many turns do not continue. */
interface AbortedTurns {
  readonly ended: number;
  readonly killed: readonly KilledWork[];
}

const ownerOf = ({ id, agentId, principalId, conversationRef: ref }: Pick<CallsOf, 'id' | 'agentId' | 'principalId' | 'conversationRef'>) => ({
  id,
  agentId,
  principalId,
  ...(ref !== null && ref !== '' && { conversationRef: ref }),
});

/** Returns background work that had no row, because no cap in money applied to it. */
function workWithoutRow(
  { id, agentId, principalId, conversationRef, rootRunId, runId, node }: MadeWork,
  calls: readonly ModelCallRow[] = [],
): KilledWork[] {
  const [first] = calls;
  if (first === undefined || !id.startsWith('wk_')) return [];
  const about = { startedAtMs: first.atMs, origin: first.operation, part: { rootRunId, runId, node } };
  return [{ ...ownerOf({ id, agentId, principalId, conversationRef }), ...about, calls, lostNano: 0 }];
}

/** What is known of a turn of another home, or of one that had made no call. */
const unknown: Missing = { calls: [], isInFlight: true };

/** Returns what a turn may have spent beyond its noted calls, in 1e-9 dollar. */
function lostOf({ reservedNano }: TurnRow, { isInFlight }: Missing, knownNano: number): number {
  return reservedNano === null || !isInFlight ? 0 : Math.max(0, reservedNano - knownNano);
}

const isWork = ({ id }: TurnRow) => id.startsWith('wk_');

/** Origins whose turns are charged under their own names. */
const namedLikeOrigin: ReadonlySet<string> = new Set(['cron', 'heartbeat', 'subagent']);

function lostCall(turn: TurnRow, costNano: number, noted: MadeTurn | undefined): ModelCallRow {
  const [provider = '', ...rest] = (turn.model ?? '').split('/');
  return {
    provider,
    model: rest.join('/'),
    operation: noted?.synthetic === true ? 'evaluation' : isWork(turn) || namedLikeOrigin.has(turn.origin) ? turn.origin : 'interactive',
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
