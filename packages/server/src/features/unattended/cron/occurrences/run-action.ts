import { CronCounter, type CronAction } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { RunResult } from './finish.ts';

/** Runs a built-in job for one agent and returns its counters. Throws `conflict` when the same job is already running. */
export type InternalAction = (
  agent: Agent,
  signal: AbortSignal,
) => Promise<{ readonly counters: Readonly<Record<string, number>>; readonly failed: boolean }>;

export interface RunActionDeps {
  readonly clock: Clock;
  readonly actions: Readonly<Record<CronAction, InternalAction>>;
}

const actionMs = 600_000;
const graceMs = 5_000;

/** Runs a built-in job in bounded time. Rejects when the daemon stops, so that the next process resumes the job. */
export async function runAction(deps: RunActionDeps, agent: Agent, action: CronAction, signal: AbortSignal): Promise<RunResult> {
  const deadline = new AbortController();
  const overrun = Promise.withResolvers<RunResult>();
  const cancels = [
    deps.clock.after(actionMs, () => deadline.abort(new AppError('timeout', 'The job took too long'))),
    deps.clock.after(actionMs + graceMs, () =>
      overrun.resolve({ status: 'unknown', errorKind: 'timeout', reason: 'The job took too long and did not stop when asked to.' }),
    ),
  ];
  try {
    return await Promise.race([overrun.promise, act()]);
  } finally {
    for (const cancel of cancels) cancel();
  }

  async function act(): Promise<RunResult> {
    try {
      const { counters, failed } = await deps.actions[action](agent, AbortSignal.any([signal, deadline.signal]));
      const counted = { counters: countersOf(counters) };
      if (failed) return { status: 'failed', errorKind: 'dependency', dependency: 'dependency_error', reason: 'The model failed.', ...counted };
      return { status: 'completed', dependency: action === 'memory_lifecycle' ? 'neutral' : 'success', ...counted };
    } catch (error) {
      // When the daemon is stopping, the next process resumes the job.
      signal.throwIfAborted();
      if (deadline.signal.aborted) return { status: 'failed', errorKind: 'timeout', reason: 'The job took too long and was stopped.' };
      const isBusy = error instanceof AppError && error.code === 'conflict';
      return {
        status: isBusy ? 'skipped' : 'failed',
        errorKind: isBusy ? 'precondition' : 'internal',
        reason: error instanceof AppError ? error.message : 'Internal error',
      };
    }
  }
}

const maxCounters = 32;

function countersOf(counts: Readonly<Record<string, number>>): CronCounter[] {
  return Object.entries(counts)
    .map(([name, value]) => CronCounter().parse({ name: name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value }))
    .slice(0, maxCounters);
}
