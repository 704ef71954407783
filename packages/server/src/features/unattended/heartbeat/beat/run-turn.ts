import type { CallContext } from '../../../../kernel/call-context.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import type { DurableOutcome, TurnsApi } from '../../../conversations/turns/api.ts';
import type { WorkItem } from '../../durable/api.ts';
import type { HeartbeatConfig } from '../config.ts';
import { type BeatPayload, resultOf } from './result.ts';

export interface BeatTurnDeps {
  readonly turn: TurnsApi['runDurably'];
  readonly targetOf: (agentId: string) => ConversationTarget;
}

export interface BeatTurn {
  readonly item: WorkItem;
  readonly payload: BeatPayload;
  readonly agent: Agent;
  readonly settings: HeartbeatConfig;
  readonly signal: AbortSignal;
}

/** No token has this id, as it contains a colon. Beats have the permissions of the agent's administrator and own their conversation. */
const identity = { principalId: 'system:heartbeat', tokenId: 'system:heartbeat', scopes: ['rpc'] } as const satisfies CallContext['identity'];

export const beatPrincipal = identity.principalId;

/** Runs the turn of a beat; its result is stored with its work. */
export function runBeatTurn(deps: BeatTurnDeps, { item, payload, agent, settings, signal }: BeatTurn): Promise<DurableOutcome> {
  const call: CallContext = { identity, traceId: newTraceId(), requestId: newId('rq'), signal, transport: 'process' };
  return deps.turn(
    {
      workId: item.id,
      owner: item.owner,
      fence: item.fence,
      origin: 'heartbeat',
      target: deps.targetOf(agent.id),
      message: payload.message,
      ...(payload.fenced !== undefined && { fenced: payload.fenced }),
      ...(settings.model !== undefined && { model: settings.model }),
      ...(settings.toolPolicy !== undefined && { toolPolicy: settings.toolPolicy }),
      ...(settings.lightContext && { lightContext: true, historyTurns: 0 }),
      timeoutMs: settings.timeoutMs,
      operation: 'heartbeat',
      kept: (outcome) => resultOf(outcome, settings).kind === 'tell',
      settle(outcome) {
        const result = resultOf(outcome, settings);
        return result.kind === 'failed' ? { state: 'failed', errorKind: result.errorKind, result } : { state: 'done', result };
      },
    },
    call,
  );
}
