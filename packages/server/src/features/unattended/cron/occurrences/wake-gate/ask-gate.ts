import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { Db } from '../../../../../kernel/db/db.ts';
import { parseJson } from '../../../../../kernel/json.ts';
import type { Clock } from '../../../../../kernel/clock.ts';
import type { TraceWork } from '../../../../../kernel/work-trace.ts';
import { keepGate, listRuns, readGate } from '../occurrence-store.ts';
import { type CronWork, rootRunId } from '../work.ts';
import type { RunWakeGate, WakeGateInput } from './wake-gate.ts';

/** Verdict of a wake gate script (json-rpc.md §2.3 `wakeGate`). */
const GateAnswer = once(() =>
  z.object({
    outcome: z.enum(['woke', 'failed_open', 'skipped']),
    context: z.string().optional(),
    deliver: z.string().optional(),
    reason: z.string().optional(),
    logs: z.string(),
  }),
);
export type GateAnswer = z.output<ReturnType<typeof GateAnswer>>;

export interface AskGateDeps {
  readonly db: Db;
  readonly runWakeGate: RunWakeGate;
  readonly clock: Clock;
  readonly traceWork: TraceWork;
  /** Time zone of scripts whose job's schedule has none. */
  readonly defaultTimezone: string;
}

/** Runs the wake gate once per occurrence and stores its verdict, so that retries reuse it. */
export async function askGate(deps: AskGateDeps, work: CronWork, signal: AbortSignal): Promise<GateAnswer> {
  const { executionId, policies } = work;
  const known = await deps.db.read(readGate, { executionId });
  if (known !== null) return GateAnswer().parse(parseJson(known));
  const { script = '', language = 'js', timeoutSeconds = 1 } = policies.wakeGate ?? {};
  const input = await gateInput(deps, work);
  const startedAtMs = deps.clock.now();
  const answer = GateAnswer().parse(await deps.runWakeGate({ script, language, timeoutMs: timeoutSeconds * 1000, input, signal }));
  // A verdict interrupted by a stop is meaningless.
  signal.throwIfAborted();
  traceVerdict(deps, work, answer.outcome, startedAtMs);
  return GateAnswer().parse(parseJson(await deps.db.write(keepGate, { executionId, gateJson: JSON.stringify(answer) })));
}

function traceVerdict({ traceWork }: AskGateDeps, work: CronWork, outcome: GateAnswer['outcome'], startedAtMs: number): void {
  traceWork({
    kind: 'wake_gate',
    agentId: work.agentId,
    principalId: work.principalId,
    origin: 'cron',
    // That of the turn which it wakes.
    rootRunId: rootRunId(work.executionId),
    startedAtMs,
    outcome: outcome === 'failed_open' ? 'failed' : outcome === 'skipped' ? 'skipped' : 'ok',
    endReason: outcome,
    refs: { jobId: work.jobId, occurrenceId: work.executionId },
    // A script of a wake gate has no tools.
    facts: { wake: outcome !== 'skipped', failedOpen: outcome === 'failed_open', toolCalls: 0, turnsSaved: outcome === 'skipped' ? 1 : 0 },
  });
}

async function gateInput(
  deps: AskGateDeps,
  { executionId, jobId, jobName, agentId, scheduledForMs, startedAtMs, timeZone }: CronWork,
): Promise<WakeGateInput> {
  const runs = await deps.db.read(listRuns, { jobId, limit: 10 });
  const last = runs.find((run) => run.executionId !== executionId && run.terminalAtMs !== null);
  return {
    agentId,
    jobName,
    scheduledForMs,
    nowMs: startedAtMs,
    timeZone: timeZone ?? deps.defaultTimezone,
    ...(last !== undefined && {
      lastRun: {
        status: last.status,
        startedAtMs: last.startedAtMs,
        ...(last.terminalAtMs !== null && { durationMs: last.terminalAtMs - last.startedAtMs }),
        ...(last.errorKind !== null && { errorKind: last.errorKind }),
      },
    }),
  };
}
