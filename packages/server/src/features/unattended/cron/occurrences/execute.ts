import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { DurableWork, WorkItem, WorkWait } from '../../durable/api.ts';
import { type AgentTurnDeps, runAgentTurn } from './agent-turn.ts';
import { type AuthorityDeps, authorityOf, withoutToken } from './authority.ts';
import type { Finish, RunResult, StoredEnd } from './finish.ts';
import { runAction, type RunActionDeps } from './run-action.ts';
import { askGate, type AskGateDeps } from './wake-gate/ask-gate.ts';
import type { CronWork } from './work.ts';

export interface ExecuteDeps extends AskGateDeps, AgentTurnDeps, AuthorityDeps, RunActionDeps {
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly durable: Pick<DurableWork, 'waitFor' | 'untilResumed'>;
}

/** An occurrence that this process executes. */
export interface Execution {
  readonly work: CronWork;
  readonly item: WorkItem;
  readonly signal: AbortSignal;
  /** Resolves with false when the claim was refused, as the execution may start before it is stored. */
  readonly claimed: Promise<boolean>;
  /** Returns what to store when the occurrence ends. */
  readonly planEnd: (result: RunResult) => Finish;
}

/**
 * Outcome of an executed occurrence: its result, which the caller must store, or its end, stored with its turn. `lost`: another worker
 * holds the claim, do nothing; `waits`: it resumes when its model provider answers; `wait`: the caller must still requeue its work.
 */
export type Executed = { readonly result: RunResult } | { readonly stored: StoredEnd } | 'lost' | 'waits' | { readonly wait: WorkWait };

/** Executes an occurrence. Rejects only when it should be retried. */
export async function executeOccurrence(deps: ExecuteDeps, execution: Execution): Promise<Executed> {
  const { work, item, signal } = execution;
  const { payload, policies } = work;
  const agent = deps.agents.find(work.agentId);
  const authority = await authorityOf(deps, work);
  const identity = typeof authority === 'string' ? undefined : authority;
  const unauthorized: RunResult = { status: 'skipped', errorKind: 'authority', reason: typeof authority === 'string' ? authority : withoutToken };
  const isAuthorized = identity !== undefined && agent !== undefined && identity.agents?.includes(agent.id) !== false;
  const startsWithTurn = payload.kind === 'agent_turn' && policies.wakeGate === undefined && isAuthorized && !agent.suspended;
  // The opening of a turn checks the claim, in the commit that stores it; everything else also acts outside of the database.
  if (!startsWithTurn && !(await execution.claimed)) return 'lost';
  // It must not wait any longer for an agent that it may not use.
  if (payload.kind === 'agent_turn' && item.waiting !== undefined && identity === undefined) return { result: unauthorized };
  // A waiting run was accepted while its agent was active: suspension postpones it, and skips only new occurrences.
  if (agent?.suspended === true && item.waiting !== undefined) return deps.durable.untilResumed(agent.id);
  if (agent === undefined || agent.suspended) return { result: skippedWithout(work.agentId, agent !== undefined) };
  if (payload.kind === 'internal_action') {
    const result = await runAction(deps, agent, payload.action, signal);
    const failure = result.dependency === 'dependency_error' ? { transient: true, message: result.reason ?? '' } : undefined;
    const ended = { model: agent.config.model ?? '', ...(failure !== undefined && { failure }) };
    return deps.durable.waitFor(item, ended) ?? { result };
  }
  if (!isAuthorized) return { result: unauthorized };
  switch (payload.kind) {
    case 'heartbeat_event':
      return { result: { status: 'dispatched' } };
    case 'delivery':
      return { result: { status: 'completed', text: payload.text, ours: true } };
    case 'agent_turn': {
      const gate = policies.wakeGate === undefined ? undefined : await askGate(deps, work, signal);
      if (gate?.outcome === 'skipped')
        return {
          result: { status: 'skipped', reason: 'The wake gate found nothing to do.', ...(gate.deliver !== undefined && { text: gate.deliver }) },
        };
      const end = await runAgentTurn(deps, { ...execution, agent, identity, payload, gate });
      return typeof end === 'string' ? end : { stored: end };
    }
  }
}

const skippedWithout = (agentId: string, isThere: boolean): RunResult => ({
  status: 'skipped',
  errorKind: 'precondition',
  reason: isThere ? `Agent ${agentId} is suspended.` : `Agent ${agentId} does not exist.`,
});
