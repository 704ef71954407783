import { ToolPolicy } from '@gatehouse/contract';
import type { CallContext, Identity } from '../../../../kernel/call-context.ts';
import { type Operation, outputOf, toCall } from '../../../../kernel/db/operation.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import type { TurnOutcome, TurnsApi } from '../../../conversations/turns/api.ts';
import type { DurableWork, WorkItem } from '../../durable/api.ts';
import { chatOf, type Finish, type Finished, type RunResult, type StoredEnd, unknownResult } from './finish.ts';
import type { GateAnswer } from './wake-gate/ask-gate.ts';
import { type CronWork, rootRunId } from './work.ts';

export interface AgentTurnDeps {
  readonly turns: Pick<TurnsApi, 'runDurably'>;
  readonly durable: Pick<DurableWork, 'waitFor'>;
  /** Returns the conversation of a principal with an agent under a key. */
  readonly conversationOf: (agentId: string, principalId: string, key: { readonly userId: string; readonly channelId: string }) => ConversationTarget;
  /** `finishOccurrence`. */
  readonly finish: Operation<Finish, Finished | undefined>;
}

export interface AgentTurn {
  readonly agent: Agent;
  readonly identity: Identity;
  readonly work: CronWork;
  readonly payload: CronWork['payload'] & { readonly kind: 'agent_turn' };
  /** Verdict of the wake gate, if there is one. */
  readonly gate: GateAnswer | undefined;
  readonly item: WorkItem;
  readonly signal: AbortSignal;
  /** Returns what to store when the occurrence ends. */
  readonly planEnd: (result: RunResult) => Finish;
}

const defaultTurnMs = 600_000;

/** Runs the turn of an occurrence, which ends with it. `lost`: another worker holds the claim; `waits`: the work resumes later. */
export async function runAgentTurn(deps: AgentTurnDeps, turn: AgentTurn): Promise<StoredEnd | 'lost' | 'waits'> {
  const { agent, identity, work, payload, gate, item, signal } = turn;
  const { sessionPolicy, cacheRetention, toolPolicy } = work.policies;
  const call: CallContext = { identity, traceId: newTraceId(), requestId: newId('rq'), signal, transport: 'process' };
  let plan: Finish | undefined;
  const outcome = await deps.turns.runDurably(
    {
      workId: item.id,
      owner: item.owner,
      fence: item.fence,
      origin: 'cron',
      target: deps.conversationOf(agent.id, work.principalId, { userId: 'cron', channelId: work.jobId }),
      ...(work.author !== undefined && { author: work.author }),
      ...(work.policies.deliveryTarget !== undefined && { endpoint: chatOf(work.policies.deliveryTarget.destinationEndpoint) }),
      message: work.isBackfill === true ? `${payload.message}\n\n${backfillNote(work.scheduledForMs)}` : payload.message,
      ...(gate?.context !== undefined && { fenced: { text: gate.context, source: 'wake gate', clean: true } }),
      ...(payload.model !== undefined && { model: payload.model }),
      timeoutMs: payload.timeoutSeconds === undefined ? defaultTurnMs : payload.timeoutSeconds * 1000,
      ...(toolPolicy !== undefined && { toolPolicy: ToolPolicy.parse(toolPolicy) }),
      ...(cacheRetention !== undefined && { cacheRetention }),
      rootRunId: rootRunId(work.executionId),
      refs: { jobId: work.jobId, occurrenceId: work.executionId },
      historyTurns: sessionPolicy?.strategy === 'rolling' ? sessionPolicy.maxHistoryTurns : 0,
      kept: true,
      operation: 'cron',
      settle(ended) {
        const wait = deps.durable.waitFor(item, ended);
        if (wait !== undefined) return wait;
        const result = resultOfTurn(ended);
        plan = turn.planEnd(result);
        return {
          state: result.status === 'completed' ? 'done' : result.status === 'aborted' ? 'aborted' : 'failed',
          ...(result.errorKind !== undefined && { errorKind: result.errorKind }),
          alongside: [toCall(deps.finish, plan)],
        };
      },
    },
    call,
  );
  if (!outcome.settled) return 'lost';
  if (outcome.state === 'accepted' || plan === undefined) return 'waits';
  return { plan, done: outputOf(deps.finish, outcome.outputs) };
}

/** Without it the agent would work for the present time. */
const backfillNote = (scheduledForMs: number) => `(This run is for the scheduled time ${new Date(scheduledForMs).toISOString()}, and starts late.)`;

function resultOfTurn({ effectsRefused, ...outcome }: TurnOutcome): RunResult {
  // The work ends as unknown too, whatever its settlement says.
  if (outcome.failure?.kind === 'unknown') return unknownResult;
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
