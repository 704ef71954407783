import { AppError } from '../../../../kernel/app-error.ts';
import { recordAudit } from '../../../../kernel/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { MemoryLifeApi, RecallApi } from '../api.ts';
import { sweepMemories } from './lifecycle.ts';
import { createRecall, type RecallDeps } from '../recall/recall.ts';
import { reviewConversations, type ReviewDeps } from './review/review.ts';
import { createUseCounter } from './use-counter.ts';

export interface MemoryLifeDeps extends ReviewDeps, Pick<RecallDeps, 'remembers'> {
  readonly agents: AgentsApi;
}

export interface MemoryLife extends AsyncDisposable {
  /** Used by turns. */
  readonly recall: RecallApi;
  /** Used by schedules. */
  readonly api: MemoryLifeApi;
  readonly methods: HandlersOf<'memory.review' | 'memory.lifecycle'>;
}

/** Life of memories over time: recalled into turns, gathered from conversations, folded into one another, and fading. */
export function createMemoryLife(deps: MemoryLifeDeps): MemoryLife {
  const { agents } = deps;
  const uses = createUseCounter(deps);
  const stopping = new AbortController();
  const running = new Map<string, Promise<unknown>>();

  /** One run per agent and kind at a time; all end when the daemon does. */
  async function alone<T>(kind: 'review' | 'lifecycle', agentId: string, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const key = `${kind} ${agentId}`;
    if (running.has(key)) throw new AppError('conflict', `A ${kind} of agent ${agentId} is running already`, { param: 'agentId' });
    const work = run(AbortSignal.any([signal, stopping.signal]));
    running.set(key, work);
    try {
      return await work;
    } finally {
      running.delete(key);
    }
  }

  const api: MemoryLifeApi = {
    review: (agent, signal) => alone('review', agent.id, signal, (both) => reviewConversations(deps, { agent, signal: both })),
    lifecycle: (agent, { dryRun, signal }) =>
      alone('lifecycle', agent.id, signal, (both) => sweepMemories({ ...deps, flushUses: uses.flush }, { agent, dryRun, signal: both })),
  };

  function known(agentId: string = agents.defaultId, call: CallContext): Agent {
    const agent = agents.find(agentId);
    if (agent === undefined || call.identity.agents?.includes(agentId) === false)
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  function refuseAgents(call: CallContext): void {
    if (call.agentCaller !== undefined) throw new AppError('denied', 'This method is for administrators, not for agents');
  }

  const methods: MemoryLife['methods'] = {
    'memory.review': async ({ agentId }, call) => {
      refuseAgents(call);
      // A suspended agent makes no model calls.
      const report = await api.review(agents.usable(agentId, call), call.signal);
      const { conversationsReviewed, admitted, derived, consolidated } = report;
      await recordAudit(deps, call, {
        actionType: 'memory.review',
        classification: 'mutate',
        target: report.agentId,
        metadata: { conversationsReviewed, admitted, derived, consolidated },
      });
      return report;
    },
    'memory.lifecycle': async ({ agentId, dryRun }, call) => {
      refuseAgents(call);
      const report = await api.lifecycle(known(agentId, call), { dryRun, signal: call.signal });
      const { promoted, demoted, evicted, actions } = report;
      if (!dryRun)
        await recordAudit(deps, call, {
          actionType: 'memory.lifecycle',
          classification: 'destructive',
          target: report.agentId,
          metadata: { promoted, demoted, evicted },
        });
      return { ...report, actions: actions.map(({ id, kind, reason }) => ({ id, kind, reason })) };
    },
  };

  return {
    recall: createRecall({ ...deps, uses }),
    api,
    methods,
    async [Symbol.asyncDispose]() {
      stopping.abort(new AppError('unavailable', 'The daemon is stopping'));
      await Promise.allSettled(running.values());
      await uses[Symbol.asyncDispose]();
    },
  };
}
