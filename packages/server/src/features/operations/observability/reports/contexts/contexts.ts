import type { ResultInput, TraceStep } from '@gatehouse/contract';
import type { Db } from '../../../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../../../kernel/handlers.ts';
import { agentsFor, refuseAgents } from '../access.ts';
import { type FoundContext, listContexts, listTrees } from './context-store.ts';

/** Handlers of `obs.context.*`. */
export function createContextReports({
  db,
  flush,
}: {
  readonly db: Db;
  /** Resolves when the records of ended turns are stored. */
  readonly flush: () => Promise<unknown>;
}): HandlersOf<'obs.context.pipeline' | 'obs.context.dag'> {
  return {
    'obs.context.pipeline': async ({ agentId, limit, includeSynthetic }, call) => {
      refuseAgents(call);
      const agentIds = agentsFor(agentId, call);
      await flush();
      return (await db.search(listContexts, { agentIds, limit, includeSynthetic })).map(viewOf);
    },
    'obs.context.dag': async ({ agentId, limit }, call) => {
      refuseAgents(call);
      return db.search(listTrees, { agentIds: agentsFor(agentId, call), limit });
    },
  };
}

function viewOf({ step, tokens, startedAtMs, ...of }: FoundContext): ResultInput<'obs.context.pipeline'>[number] {
  const fact = (name: string) => countOf(step.facts?.[name]);
  const window = fact('windowTokens');
  const loaded = sum([fact('systemTokens'), fact('historyTokens')]);
  const verdict = step.facts?.['verdict'];
  return {
    ...of,
    timestamp: startedAtMs + step.at,
    durationMs: step.ms ?? 0,
    verdict: typeof verdict === 'string' ? verdict : null,
    windowTokens: window,
    tokensLoaded: loaded,
    budgetUtilization: loaded === null || window === null || window === 0 ? null : loaded / window,
    messagesIn: fact('messagesIn'),
    messagesOut: fact('messagesOut'),
    messagesLeftOut: fact('leftOut') ?? 0,
    resultsMasked: fact('masked') ?? 0,
    summariesUsed: fact('notes') ?? 0,
    cacheHitTokens: tokens?.cached ?? 0,
    cacheWriteTokens: tokens?.cacheWritten ?? 0,
    cacheMissTokens: tokens === undefined ? 0 : Math.max(0, tokens.in - tokens.cached - tokens.cacheWritten),
  };
}

function countOf(fact: NonNullable<TraceStep['facts']>[string] | undefined): number | null {
  return typeof fact === 'number' && Number.isFinite(fact) ? Math.max(0, Math.round(fact)) : null;
}

/** Null when nothing is known. */
function sum(counts: readonly (number | null)[]): number | null {
  return counts.every((count) => count === null) ? null : counts.reduce<number>((total, count) => total + (count ?? 0), 0);
}
