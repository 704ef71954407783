import type { ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { type CallContext, isAdmin } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import { toFailureFor } from '../../../runtime/turn-failure.ts';
import type { ConversationAddress } from '../sessions/api.ts';
import type { TurnsApi } from './api.ts';
import { cacheStats } from './store.ts';

/** Implements `agent.execute`, `agent.stream` and `agent.cacheStats` (json-rpc.md §4), and `session.steer`. */
export function createTurnMethods(deps: {
  readonly turns: TurnsApi;
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}): HandlersOf<'agent.execute' | 'agent.stream' | 'agent.cacheStats' | 'session.steer'> {
  async function execute(
    { message, ...address }: ConversationAddress & { readonly message: string },
    call: CallContext,
  ): Promise<ResultInput<'agent.execute'>> {
    const outcome = await deps.turns.execute({ message, address }, call);
    return {
      response: outcome.text,
      tokensUsed: outcome.tokensUsed,
      cachedInput: outcome.cachedInput,
      costUsd: outcome.costUsd,
      finishReason: outcome.finishReason,
      conversationRef: outcome.conversationRef,
      sessionKey: outcome.sessionKey,
      agentId: outcome.agentId,
      traceId: outcome.traceId,
      ...(outcome.failure !== undefined && { failure: toFailureFor(outcome.failure, isAdmin(call)) }),
    };
  }
  return {
    'agent.execute': execute,
    'agent.stream': async (params, call) => {
      deps.log.warn({ traceId: call.traceId }, 'agent.stream answers in one piece: JSON-RPC does not stream deltas');
      return execute(params, call);
    },
    'session.steer': async ({ message, ...address }, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'session.steer is for people, not for agents');
      const { ref, sessionKey, agentId } = await deps.turns.steer({ message, address }, call);
      return { conversationRef: ref, sessionKey, agentId, taken: true as const };
    },
    'agent.cacheStats': async ({ sinceMs, agentId }, call) => {
      // A token limited to some agents must not learn about others.
      const bound = call.identity.agents;
      if (agentId !== undefined && bound?.includes(agentId) === false)
        throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
      const agentIds = agentId === undefined ? (bound ?? null) : [agentId];
      const rows = await deps.db.read(cacheStats, { sinceMs: sinceMs === undefined ? 0 : deps.clock.now() - sinceMs, agentIds });
      const providers = rows.map(({ costNano, savedNano, ...row }) => ({
        ...row,
        totalCost: costNano / 1e9,
        totalCacheSaved: savedNano / 1e9,
        cacheHitRate: row.inputTokens === 0 ? 0 : row.cacheReadTokens / row.inputTokens,
      }));
      return { providers, totalCacheSaved: rows.reduce((sum, row) => sum + row.savedNano, 0) / 1e9 };
    },
  };
}
