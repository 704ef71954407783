import { CronCounter, type CronAction, ToolPolicy } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext, Identity } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { DurableWork, WorkItem, WorkWait } from '../../durable/api.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import type { TurnOutcome, TurnsApi } from '../../../conversations/turns/api.ts';
import type { RunResult } from './finish.ts';
import { keepGate, listRuns, readGate } from './occurrence-store.ts';
import type { RunWakeGate, WakeGateInput } from './wake-gate/wake-gate.ts';
import { type CronWork, rootRunId } from './work.ts';

/** Verdict of a wake gate script (json-rpc.md §2.3 `wakeGate`). */
const GateAnswer = z.object({
  outcome: z.enum(['woke', 'failed_open', 'skipped']),
  context: z.string().optional(),
  deliver: z.string().optional(),
  reason: z.string().optional(),
  logs: z.string(),
});
type GateAnswer = z.output<typeof GateAnswer>;

/** Runs a built-in job for one agent and returns its counters. Throws `conflict` when the same job is already running. */
export type InternalAction = (
  agent: Agent,
  signal: AbortSignal,
) => Promise<{ readonly counters: Readonly<Record<string, number>>; readonly failed: boolean }>;

export interface ExecuteDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly turns: Pick<TurnsApi, 'durable'>;
  readonly durable: Pick<DurableWork, 'waitFor' | 'untilResumed'>;
  /** Returns the current identity of a token; undefined when it was revoked. */
  readonly identityOf: (tokenId: string) => Identity | undefined;
  /** Returns the conversation of a principal with an agent under a key. */
  readonly conversationOf: (agentId: string, principalId: string, key: { readonly userId: string; readonly channelId: string }) => ConversationTarget;
  readonly runWakeGate: RunWakeGate;
  /** Time zone of scripts whose job's schedule has none. */
  readonly defaultTimezone: string;
  readonly actions: Readonly<Record<CronAction, InternalAction>>;
}

const defaultTurnMs = 600_000;
const actionMs = 600_000;
const graceMs = 5_000;

/**
 * Outcome of an executed occurrence: its result, and whether its turn already settled its work. `lost`: another worker holds the claim, do
 * nothing; `waits`: it resumes when its model provider answers; `wait`: the caller must still requeue its work.
 */
export type Executed = { readonly result: RunResult; readonly settled: boolean } | 'lost' | 'waits' | { readonly wait: WorkWait };

/** Executes an occurrence. Rejects only when it should be retried. */
export async function executeOccurrence(deps: ExecuteDeps, work: CronWork, item: WorkItem, signal: AbortSignal): Promise<Executed> {
  const here = (result: RunResult): Executed => ({ result, settled: false });
  const { payload } = work;
  const agent = deps.agents.find(work.agentId);
  // A waiting run was accepted while its agent was active: suspension postpones it, and skips only new occurrences.
  if (agent?.suspended === true && item.waiting !== undefined) return deps.durable.untilResumed(agent.id);
  if (agent === undefined || agent.suspended)
    return here({
      status: 'skipped',
      errorKind: 'precondition',
      reason: agent === undefined ? `Agent ${work.agentId} does not exist.` : `Agent ${work.agentId} is suspended.`,
    });
  if (payload.kind === 'internal_action') {
    const result = await runAction(deps, agent, payload.action, signal);
    const failure = result.dependency === 'dependency_error' ? { transient: true, message: result.reason ?? '' } : undefined;
    const ended = { model: agent.config.model ?? '', ...(failure !== undefined && { failure }) };
    return deps.durable.waitFor(item, ended) ?? here(result);
  }
  const identity = deps.identityOf(work.tokenId);
  if (identity === undefined || identity.agents?.includes(agent.id) === false)
    return here({
      status: 'skipped',
      errorKind: 'authority',
      reason: 'The token that created the job was revoked or may no longer use the agent.',
    });
  switch (payload.kind) {
    case 'heartbeat_event':
      return here({ status: 'dispatched' });
    case 'delivery':
      return here({ status: 'completed', text: payload.text, ours: true });
    case 'agent_turn':
      return runTurn(deps, agent, { work, payload, identity }, item, signal);
  }
}

async function runTurn(
  deps: ExecuteDeps,
  agent: Agent,
  {
    work,
    payload,
    identity,
  }: { readonly work: CronWork; readonly payload: CronWork['payload'] & { kind: 'agent_turn' }; readonly identity: Identity },
  item: WorkItem,
  signal: AbortSignal,
): Promise<Executed> {
  const { policies } = work;
  const gate = policies.wakeGate === undefined ? undefined : await askGate(deps, work, signal);
  if (gate?.outcome === 'skipped')
    return {
      settled: false,
      result: { status: 'skipped', reason: 'The wake gate found nothing to do.', ...(gate.deliver !== undefined && { text: gate.deliver }) },
    };
  const { sessionPolicy, cacheRetention, toolPolicy } = policies;
  const call: CallContext = { identity, traceId: newTraceId(), requestId: newId('rq'), signal, transport: 'process' };
  const outcome = await deps.turns.durable(
    {
      workId: item.id,
      owner: item.owner,
      fence: item.fence,
      origin: 'cron',
      target: deps.conversationOf(agent.id, work.principalId, { userId: 'cron', channelId: work.jobId }),
      message: payload.message,
      ...(gate?.context !== undefined && { fenced: { text: gate.context, source: 'wake gate', clean: true } }),
      ...(payload.model !== undefined && { model: payload.model }),
      timeoutMs: payload.timeoutSeconds === undefined ? defaultTurnMs : payload.timeoutSeconds * 1000,
      ...(toolPolicy !== undefined && { toolPolicy: ToolPolicy.parse(toolPolicy) }),
      ...(cacheRetention !== undefined && { cacheRetention }),
      rootRunId: rootRunId(work.executionId),
      historyTurns: sessionPolicy?.strategy === 'rolling' ? sessionPolicy.maxHistoryTurns : 0,
      kept: true,
      operation: 'cron',
      settle: (ended) => {
        const wait = deps.durable.waitFor(item, ended);
        if (wait !== undefined) return wait;
        const result = resultOfTurn(ended);
        return {
          state: result.status === 'completed' ? 'done' : result.status === 'aborted' ? 'aborted' : 'failed',
          result,
          ...(result.errorKind !== undefined && { errorKind: result.errorKind }),
        };
      },
    },
    call,
  );
  if (!outcome.settled) return 'lost';
  if (outcome.state === 'accepted') return 'waits';
  return { settled: true, result: outcome.state === 'unknown' ? unknownResult : resultOfTurn(outcome) };
}

export const unknownResult: RunResult = {
  status: 'unknown',
  errorKind: 'owner_lost',
  reason: 'The daemon stopped during an operation that must not be repeated; how far it got is unknown.',
};

function resultOfTurn({ effectsRefused, ...outcome }: TurnOutcome): RunResult {
  const result = endOfTurn(outcome);
  return effectsRefused === undefined ? result : { ...result, effectsRefused };
}

function endOfTurn({ finishReason, text, failure, tainted }: TurnOutcome): RunResult {
  if (failure === undefined && finishReason !== 'aborted' && finishReason !== 'timeout')
    return { status: 'completed', text, tainted, dependency: 'success' };
  const reason = failure?.message ?? `The turn ended with ${finishReason}.`;
  const cause = failure?.cause === undefined ? {} : { cause: failure.cause };
  if (failure?.transient === true) return { status: 'failed', errorKind: 'dependency', reason, dependency: 'dependency_error', ...cause };
  if (finishReason === 'aborted') return { status: 'aborted', errorKind: 'aborted', reason };
  if (finishReason === 'timeout') return { status: 'failed', errorKind: 'timeout', reason };
  if (finishReason === 'budget_exceeded') return { status: 'failed', errorKind: 'budget', reason };
  return { status: 'failed', errorKind: 'internal', reason, ...cause };
}

/** Stored result of work that an earlier process settled with its turn. */
const StoredResult = z.object({
  status: z.enum(['completed', 'failed', 'aborted']),
  errorKind: z.string().optional(),
  reason: z.string().optional(),
  text: z.string().optional(),
  tainted: z.boolean().optional(),
  dependency: z.enum(['success', 'dependency_error']).optional(),
  cause: z.string().optional(),
  effectsRefused: z.int().optional(),
});

export function storedResult(result: unknown): RunResult {
  const parsed = StoredResult.safeParse(result);
  return parsed.success ? dropUndefined(parsed.data) : unknownResult;
}

/** Runs the wake gate once per occurrence and stores its verdict, so that retries reuse it. */
async function askGate(deps: ExecuteDeps, work: CronWork, signal: AbortSignal): Promise<GateAnswer> {
  const { executionId, policies } = work;
  const known = await deps.db.read(readGate, { executionId });
  if (known !== null) return GateAnswer.parse(parseJson(known));
  const { script = '', language = 'js', timeoutSeconds = 1 } = policies.wakeGate ?? {};
  const input = await gateInput(deps, work);
  const answer = GateAnswer.parse(await deps.runWakeGate({ script, language, timeoutMs: timeoutSeconds * 1000, input, signal }));
  // A verdict interrupted by a stop is meaningless.
  signal.throwIfAborted();
  await deps.db.write(keepGate, { executionId, gateJson: JSON.stringify(answer) });
  return answer;
}

async function gateInput(
  deps: ExecuteDeps,
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

async function runAction(deps: ExecuteDeps, agent: Agent, action: CronAction, signal: AbortSignal): Promise<RunResult> {
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
    .map(([name, value]) => CronCounter.parse({ name: name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value }))
    .slice(0, maxCounters);
}

/** Drops undefined optional fields. */
function dropUndefined(result: z.output<typeof StoredResult>): RunResult {
  const { status, errorKind, reason, text, dependency, cause } = result;
  return {
    status,
    ...(errorKind !== undefined && { errorKind }),
    ...(reason !== undefined && { reason }),
    ...(text !== undefined && { text }),
    ...(dependency !== undefined && { dependency }),
    ...(cause !== undefined && { cause }),
  };
}
