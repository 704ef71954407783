import type { CallingTurn } from '../../../../kernel/call-context.ts';
import type { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { type Operation, toCall } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { TakenResults } from '../../../../runtime/background.ts';
import { isTainted } from '../../../../runtime/taint.ts';
import type { RunTurn, TurnResult, TurnSink } from '../../../../runtime/turn.ts';
import type { TurnAutonomy } from '../../../delegation/autonomy/api.ts';
import type { TracesApi } from '../../../operations/traces/api.ts';
import type { CallsOf, NotedCalls, ReserveStore, TurnBudget } from '../../../access/budgets/api.ts';
import type { RecallApi } from '../../../knowledge/memory/api.ts';
import type { SkillsApi } from '../../../knowledge/skills/api.ts';
import type { TurnOutcome } from '../api.ts';
import type { Admitted } from '../lanes/admission.ts';
import { dropTurnMessages } from '../lanes/turn-message-store.ts';
import { takenOver, type TurnCommit, type TurnCommitted, type TurnOpening } from '../store.ts';
import { createAnnouncer } from './announce.ts';
import { recordIdOf, refsOf, toRunningRecord, toTurnRecord } from './turn-record.ts';
import { noteOutcome, notePreparation } from './trace-notes.ts';
import { sumCalls, toCommit, toOutcome, type TurnCalls, type TurnStart, OpenRow } from './turn-row.ts';
import { type BegunTurn, callingTurn, isSynthetic, type PreparedTurn, toInput } from './turn-input.ts';

export interface TurnRunnerDeps {
  readonly memory: Pick<RecallApi, 'attribute'>;
  readonly skills: Pick<SkillsApi, 'ended'>;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly runTurn: RunTurn;
  readonly openTurn: Operation<TurnOpening, void>;
  readonly commitTurn: Operation<TurnCommit, TurnCommitted>;
  readonly background: TakenResults;
  readonly traces: TracesApi;
  readonly autonomy: TurnAutonomy;
  /** Returns where the model calls of a turn are noted until they are booked. */
  readonly openCalls: (of: CallsOf) => NotedCalls;
  /** Returns the limits that apply to a turn of the agent. */
  readonly budgetOf: (
    payer: { readonly agentId: string; readonly principalId: string },
    store: ReserveStore,
    turn: { readonly calling: CallingTurn; readonly used?: { readonly tokens: number; readonly nano: number } | undefined },
  ) => TurnBudget;
}

export interface TurnRunner {
  /** Runs, commits and announces one turn; the caller must hold the conversation's lane. Rejects when its token was revoked meanwhile. */
  run(turn: PreparedTurn, admitted: Admitted, sink: TurnSink | undefined): Promise<TurnOutcome>;
  running(): number;
}

export function createTurnRunner(deps: TurnRunnerDeps): TurnRunner {
  const announce = createAnnouncer(deps);
  let count = 0;

  async function run(turn: PreparedTurn, admitted: Admitted, sink: TurnSink | undefined): Promise<TurnOutcome> {
    const start = turn.durable?.start ?? startOf(turn, admitted.call.traceId, deps);
    const calling = callingTurn(turn, start);
    admitted.running = { turn, calling, startedAtMs: start.startedAtMs };
    turn.durable?.running();
    count += 1;
    const begun = { start, calling, row: new OpenRow(deps, start, turn.alongside), trace: deps.traces.ofTurn() };
    if (begun.trace !== undefined) notePreparation(begun.trace, turn);
    const shown = show(turn, begun);
    try {
      const beginning = deps.autonomy.begin(calling, turn.durable?.isResumed);
      if (beginning !== undefined) await beginning;
      return await runBegun(turn, begun, admitted, sink);
    } finally {
      shown?.[Symbol.dispose]();
      admitted.running = undefined;
      count -= 1;
      deps.autonomy.end(calling);
    }
  }

  async function runBegun(turn: PreparedTurn, begun: BegunTurn, admitted: Admitted, sink: TurnSink | undefined): Promise<TurnOutcome> {
    const { target, agent, origin, durable, remembered } = turn;
    const { principalId } = target;
    const { id: turnId, traceId, startedAtMs } = begun.start;
    const about = { conversationRef: target.ref, sessionKey: target.sessionKey, agentId: agent.id, turnId, traceId, origin };
    if (durable?.isResumed !== true) {
      const senderId = origin === 'background' ? origin : admitted.call.identity.principalId;
      announce.received(about, principalId, turn.question.text, senderId, startedAtMs);
    }
    const store = durable?.ledger ?? begun.row;
    const budget = deps.autonomy.capped(
      deps.budgetOf({ agentId: agent.id, principalId }, store, { calling: begun.calling, used: durable?.used }),
      begun.calling,
    );
    const conversationRef = durable !== undefined || turn.kept ? target.ref : null;
    const { id: _, agentId: _agent, principalId: _owner, ...asBegun } = begun.start;
    const { rootRunId } = begun.calling;
    const recordId = begun.trace === undefined ? turnId : recordIdOf({ turn, begun, trace: begun.trace });
    const refs = turn.durable === undefined ? undefined : refsOf(turn.durable.turn, begun.calling);
    const marks = {
      ...(refs !== undefined && { refs }),
      ...(rootRunId !== `root-turn-${turnId}` && { rootRunId }),
      ...(isSynthetic(turn) && { synthetic: true }),
      ...(recordId !== turnId && { recordId }),
    };
    const made = deps.openCalls({ id: turnId, agentId: agent.id, principalId, conversationRef, turn: { ...asBegun, origin, ...marks } });
    const input = { ...toInput(turn, begun, admitted), budget, made };
    // Another process may find different memories and notes for the same question.
    if (durable !== undefined && isTainted(input.messages.slice(turn.history.length), input)) durable.ledger.taint();
    const result =
      durable?.interruptedResult(turn.ask.models) ??
      withReason(await deps.runTurn(input, announce.streaming(sink, about, principalId)), admitted.stoppedBy);
    const calls = sumCalls(result.calls);
    const outcome = toOutcome(begun.start, result, calls, durable?.ledger.before);
    const stored = await traced(turn, begun, result, () =>
      durable === undefined
        ? commit(turn, begun, { result, calls, outcome, isSteered: admitted.messages.hasTaken })
        : durable.commit(result, outcome, turn.question, { stopped: admitted.controller.signal, calling: begun.calling }),
    );
    made.close();
    if (stored === undefined) return outcome;
    if (stored.waits === true) {
      announce.used(result.calls, about, principalId);
      return outcome;
    }
    // What is learned from turns comes from those that somebody asked for.
    if (turn.isolated !== true) {
      deps.skills.ended({ agentId: agent.id, turnId, principalId, injected: turn.skills }, result);
      if (remembered !== undefined) deps.memory.attribute({ agentId: agent.id, ids: remembered.ids }, result);
    }
    announce.used(result.calls, about, principalId);
    announce.ended(about, target, result, stored.created);
    // The result must not reach a caller whose token was revoked.
    if (durable === undefined && admitted.stoppedBy?.code === 'unauthenticated') throw admitted.stoppedBy;
    return outcome;
  }

  /** Shows a turn among the running ones. */
  function show(turn: PreparedTurn, begun: BegunTurn): Disposable | undefined {
    const { trace } = begun;
    if (trace === undefined) return undefined;
    const traced = { turn, begun, trace };
    return deps.traces.running(() => toRunningRecord(traced));
  }

  /** Stores the trace of a turn when its commit has ended, in whatever way. */
  async function traced<T>(turn: PreparedTurn, begun: BegunTurn, result: TurnResult, commitIt: () => Promise<T>): Promise<T> {
    const { trace } = begun;
    if (trace === undefined) return commitIt();
    const endedAtMs = deps.clock.now();
    noteOutcome(trace, result);
    const about = { turn, begun, trace, endedAtMs, result };
    try {
      const stored = await commitIt();
      const isTakenOver = stored === undefined && result.finishReason !== 'aborted';
      deps.traces.record(toTurnRecord(isTakenOver ? { ...about, fault: 'taken_over' } : about));
      return stored;
    } catch (error) {
      deps.traces.record(toTurnRecord({ ...about, fault: 'not_stored' }));
      throw error;
    }
  }

  /** Commits a turn bound to a request; background results count as reported only if the commit succeeds. */
  async function commit(
    turn: PreparedTurn,
    { start, calling }: Pick<BegunTurn, 'start' | 'calling'>,
    { result, calls, outcome, isSteered }: EndedTurn,
  ): Promise<Stored> {
    const { reported } = result;
    const ended = turn.alongside?.ended?.(outcome, result.messages, turn.brought) ?? [];
    const booked = deps.autonomy.booking(calling, toRootSums(calls));
    const own = [...ended, ...booked, ...(isSteered ? [toCall(dropTurnMessages, { turnId: start.id })] : [])];
    const alongside = reported === undefined ? own : [...own, deps.background.markCall(reported, 'told')];
    const rows = toCommit(start, result, calls, { endedAtMs: deps.clock.now(), question: turn.kept ? turn.question : undefined });
    try {
      const stored = await deps.db.write(deps.commitTurn, { ...rows, alongside });
      if (stored.isRefused === true) throw takenOver();
      if (reported !== undefined) deps.background.reported(reported);
      return stored;
    } catch (error) {
      if (reported !== undefined) deps.background.release(reported);
      throw error;
    }
  }

  return { run, running: () => count };
}

function startOf(
  { id = newId('tn'), target, agent, origin }: PreparedTurn,
  traceId: string,
  { clock, bootId }: Pick<TurnRunnerDeps, 'clock' | 'bootId'>,
): TurnStart {
  const { ref: conversationRef, sessionKey, principalId } = target;
  return { id, conversationRef, sessionKey, agentId: agent.id, principalId, origin, traceId, startedAtMs: clock.now(), bootId };
}

const toRootSums = ({ inputTokens, outputTokens, knownNano, rows }: TurnCalls) => ({
  tokens: inputTokens + outputTokens,
  nano: knownNano,
  unpriced: rows.filter(({ costNano }) => costNano === null).length,
});

interface EndedTurn {
  readonly result: TurnResult;
  readonly calls: TurnCalls;
  readonly outcome: TurnOutcome;
  readonly isSteered: boolean;
}

/** `created`: the conversation is new; `waits`: the turn has not ended. */
interface Stored {
  readonly created: boolean;
  readonly waits?: true;
}

/** Adds the reason of the stop to the result of a stopped turn. */
function withReason(result: TurnResult, stoppedBy: AppError | undefined): TurnResult {
  const { finishReason, failure } = result;
  return stoppedBy === undefined || finishReason !== 'aborted' || failure === undefined
    ? result
    : { ...result, failure: { ...failure, message: stoppedBy.message } };
}
