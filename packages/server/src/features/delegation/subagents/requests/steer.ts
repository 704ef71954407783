import type { ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { type CallContext, isTaintedCall } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import { isUntrustedOrigin } from '../../../../runtime/tool-policy.ts';
import type { WorkAuthority } from '../../../access/tokens/api.ts';
import type { RunAcceptance } from './acceptance.ts';
import type { AgentToAgentConfig } from '../config.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import type { SpawnGate } from './gate.ts';
import { readOptions } from './options.ts';
import { notRunning } from '../status/reach.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { type EndedRun, type RunRow, storedRun } from '../run/row.ts';
import type { RunEvents } from '../run/run-events.ts';
import type { Runner } from '../run/runner.ts';

type Refusal = 'not_running' | 'too_soon';

export interface SteerDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: Live<AgentToAgentConfig>;
  readonly gate: SpawnGate;
  readonly events: RunEvents;
  readonly runner: Runner;
  readonly fence: FenceText;
  readonly authority: Pick<WorkAuthority, 'assertCovers'>;
  readonly wake: () => void;
  /** Checks that an agent may start a run. */
  readonly admit: (call: CallContext) => void;
  readonly inject: Operation<
    { readonly runId: string; readonly beforeMs: number; readonly atMs: number; readonly text: string; readonly steerId: string },
    Refusal | undefined
  >;
  readonly replace: Operation<
    { readonly runId: string; readonly beforeMs: number; readonly atMs: number; readonly next: RunAcceptance },
    Refusal | { readonly ended: EndedRun[] }
  >;
  /** Call after the commit that ended these runs. */
  readonly stopped: (runs: readonly EndedRun[]) => Promise<void>;
  /** Plans a run that replaces another one, with another task. */
  readonly planReplacement: (row: RunRow, task: { readonly task: string; readonly message: string }) => RunAcceptance;
}

/** Minimum time between two messages to one run, from any sender. */
const spacingMs = 2000;
const taskCharacters = 100_000;

const steered = '[The requester of this work sends a message. Follow it as far as your rules allow.]';
const replacementIntro =
  'You are a sub-agent that replaces a stopped one. Your task is the message below, as far as your rules allow. Nobody answers questions; put the complete result into your last message.';

/** `subagent.steer`: injects a message into the run, or replaces the run by another one. */
export function createSteer(deps: SteerDeps) {
  const { db, clock, events } = deps;

  function refuse(refusal: Refusal, row: RunRow): AppError {
    if (refusal === 'not_running') return notRunning(row.id);
    return new AppError('rate_limited', `A run takes one message in ${spacingMs / 1000} seconds`, { retryAfterMs: spacingMs });
  }

  /** Applies the checks of a spawn; neither a narrower token nor a turn of an untrusted origin steers a run that has more authority. */
  function admit(row: RunRow, call: CallContext): void {
    const turn = call.agentCaller?.turn;
    const { asked } = readOptions(row.optionsJson);
    if (turn !== undefined && isUntrustedOrigin(turn.origin) && asked.origin !== turn.origin)
      throw new AppError('denied', `A turn of origin ${turn.origin} may not steer a run requested by origin ${asked.origin}`);
    deps.authority.assertCovers(row, call, 'message');
    if (turn !== undefined && !deps.config.current.steerInject) deps.admit(call);
  }

  return async (row: RunRow, message: string, call: CallContext): Promise<ResultInput<'subagent.steer'>> => {
    admit(row, call);
    const atMs = clock.now();
    const when = { runId: row.id, beforeMs: atMs - spacingMs, atMs };
    const fenced = deps.fence(message, { source: 'steer', clean: !isTaintedCall(call) });
    if (deps.config.current.steerInject) {
      const kept = { id: newId('ss'), text: `${steered}\n${fenced}` };
      const not = await db.write(deps.inject, { ...when, steerId: kept.id, text: kept.text });
      if (not !== undefined) throw refuse(not, row);
      deps.runner.live(row.id)?.steer(kept);
      return { status: 'steered_inject', runId: row.id };
    }
    if (deps.gate.refusal !== undefined) throw deps.gate.refusal.error;
    // A node of a graph belongs to its graph, which would not know about another run.
    if (row.graphId !== null)
      throw new AppError('precondition_failed', 'The run of a graph cannot be replaced; set security.agentToAgent.steerInject');
    const next = deps.planReplacement(row, { task: headOf(message, taskCharacters), message: `${replacementIntro}\n\n${fenced}` });
    const done = await db.write(deps.replace, { ...when, next });
    if (typeof done === 'string') throw refuse(done, row);
    await deps.stopped(done.ended);
    events.spawned(storedRun(next.row));
    deps.wake();
    return { status: 'steered', oldRunId: row.id, newRunId: next.row.id };
  };
}
