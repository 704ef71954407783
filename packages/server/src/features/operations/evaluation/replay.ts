import { FinishReason, TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { TurnRow, TurnsApi } from '../../conversations/turns/api.ts';
import type { SessionsApi } from '../../conversations/sessions/api.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { FindTurn } from './find-turn.ts';

/** Handler of `obs.trace.replay`. */
export function createReplay(deps: {
  readonly agents: Pick<AgentsApi, 'usable'>;
  readonly turns: Pick<TurnsApi, 'replay'>;
  readonly sessions: Pick<SessionsApi, 'forkBefore' | 'existing'>;
  readonly findTurn: FindTurn;
  readonly knowsModel: (name: string) => boolean;
}): HandlersOf<'obs.trace.replay'> {
  return {
    'obs.trace.replay': async ({ ref, model, agentId }, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'obs.trace.replay is for administrators, not for agents');
      const turn = await deps.findTurn(ref, call);
      // Before anything is created; a turn outside of the reach is indistinguishable from one that does not exist.
      const source = await deps.sessions.existing({ conversationRef: turn.conversationRef }, call).catch((error: unknown) => {
        throw error instanceof AppError && error.code === 'not_found' ? notKept() : error;
      });
      const origin = TurnOrigin.safeParse(turn.origin).data;
      if (origin === undefined) throw notKept();
      deps.agents.usable(agentId ?? source.agentId, call);
      if (model !== undefined && !deps.knowsModel(model))
        throw new AppError('precondition_failed', `No configured provider offers the model ${model}`, { param: 'model' });
      const { target, question } = await deps.sessions.forkBefore({ conversationRef: turn.conversationRef, turnId: turn.id, agentId }, call);
      const { turnId, traceId, finishReason, tokensUsed, costUsd, latencyMs, ...outcome } = await deps.turns.replay(
        { target, model, question, origin },
        call,
      );
      const { ref: conversationRef, sessionKey, agentId: answering } = target;
      const measured = { turnId, traceId, model: outcome.model === '' ? null : outcome.model, finishReason, tokensUsed, costUsd, latencyMs };
      return { conversationRef, sessionKey, agentId: answering, ...measured, original: originalOf(turn) };
    },
  };
}

const notKept = () => new AppError('not_found', 'Only turns of stored conversations can be replayed', { param: 'ref' });

function originalOf(turn: TurnRow) {
  const { inputTokens: input, outputTokens: output } = turn;
  return {
    turnId: turn.id,
    traceId: turn.traceId,
    agentId: turn.agentId,
    model: turn.model,
    finishReason: FinishReason.safeParse(turn.finishReason).data ?? null,
    tokensUsed: { input, output, total: input + output },
    costUsd: turn.costNano === null ? null : turn.costNano / 1e9,
    latencyMs: turn.endedAtMs === null ? null : Math.max(0, turn.endedAtMs - turn.startedAtMs),
  };
}
