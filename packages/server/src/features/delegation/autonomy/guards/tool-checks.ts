import type { Live } from '../../../../kernel/config/live.ts';
import type { AutonomyProfile } from '@gatehouse/contract';
import type { AgentCaller, CallContext, CallingTurn } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { GateAnswer, GatedCall } from '../../../../runtime/tool-gate.ts';
import { TurnDeniedError } from '../../../../runtime/turn-stop.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import type { Standing } from '../api.ts';
import type { AutonomyConfig } from '../config.ts';
import type { Guards } from './guards.ts';

export interface CapabilityCheckDeps {
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly config: Live<AutonomyConfig>;
  readonly agents: AgentsApi;
  readonly guards: Guards;
  readonly standing: (agent: Agent, caller: AgentCaller | undefined) => Standing;
  readonly isStopped: (turn: CallingTurn) => boolean;
}

/** Checks each tool call: stopped runs call nothing more, and what a tool starts must be within what the turn may start. */
export function createCapabilityCheck({ bus, clock, config, agents, guards, standing, isStopped }: CapabilityCheckDeps) {
  /** Consecutive denials, by the context that the calls of a turn share. */
  const denials = new WeakMap<CallContext, number>();

  function deny(call: GatedCall, reason: string): GateAnswer {
    const { tool, turn } = call;
    const { agentId, turnId } = turn;
    const message = tool.capability === undefined ? `Not run: ${reasons[reason] ?? reason}` : `Capability denied: ${tool.capability}`;
    if (tool.capability !== undefined) guards.deny({ capability: tool.capability, agentId, call: turn.call, tool: tool.name, reason });
    const count = (denials.get(turn.call) ?? 0) + 1;
    denials.set(turn.call, count);
    const { denialBreaker } = config.current.guards;
    if (count >= denialBreaker) {
      const rootRunId = turn.call.agentCaller?.turn?.rootRunId ?? `root-turn-${turnId}`;
      // Emit once, even when more calls of the step are denied.
      if (count === denialBreaker)
        bus.emit('autonomy:denial_breaker', { agentId, rootRunId, turnId, denials: count, timestamp: clock.now() }, turn.principalId);
      turn.abort?.(new TurnDeniedError());
    }
    return { allowed: false, message };
  }

  return (call: GatedCall): GateAnswer | undefined => {
    const { tool, turn } = call;
    const caller = turn.call.agentCaller;
    if (caller?.turn !== undefined && isStopped(caller.turn)) return deny(call, 'revoked');
    if (tool.capability !== undefined) {
      const agent = agents.find(turn.agentId);
      if (agent === undefined || !standing(agent, caller).caps.has(tool.capability)) return deny(call, 'standing');
      guards.allow({ capability: tool.capability, agentId: turn.agentId, call: turn.call, tool: tool.name });
    }
    if (tool.risk === 'outward' && !guards.takeOutward(turn.agentId)) return deny(call, 'outward');
    denials.delete(turn.call);
    return undefined;
  };
}

const reasons: Readonly<Record<string, string>> = {
  revoked: 'the run was stopped',
  outward: 'the agent made too many outward calls within an hour',
};

export interface EscalationDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: AgentsApi;
  readonly profileOf: (agent: Agent, rootRunId: string | undefined) => AutonomyProfile;
  /** Delivers a message to the inbox. */
  readonly deliver: Operation<InboxMessage, 'accepted' | 'repeated' | 'mismatch'>;
  readonly announceMessage: (message: InboxMessage) => void;
}

/** Agents with the profile `unattended` ask nobody: the call is refused, and the owner is notified, once per turn. */
export function createEscalation({ db, clock, log, agents, profileOf, deliver, announceMessage }: EscalationDeps) {
  async function escalate({ tool, turn }: GatedCall, reason: string): Promise<GateAnswer> {
    const { agentId, conversationRef, principalId, turnId } = turn;
    const message: InboxMessage = {
      id: newId('in'),
      opKey: `escalation:${turnId}`,
      digest: turnId,
      source: 'autonomy',
      agentId,
      conversationRef,
      principalId,
      level: 'alert',
      text: `Agent ${agentId} runs unattended and tried to call "${tool.name}", which needs an approval (${reason}). The call was refused.`,
      atMs: clock.now(),
    };
    try {
      if ((await db.write(deliver, message)) === 'accepted') announceMessage(message);
    } catch (error) {
      log.error({ err: error, agentId, turnId }, 'Failed to deliver an escalation to the inbox');
    }
    return { allowed: false, message: `Not run: "${tool.name}" needs an approval, and nobody is available to give it; the owner was notified` };
  }

  return (call: GatedCall, reason: string): Promise<GateAnswer> | undefined => {
    const agent = agents.find(call.turn.agentId);
    if (agent === undefined || profileOf(agent, call.turn.call.agentCaller?.turn?.rootRunId) !== 'unattended') return undefined;
    return escalate(call, reason);
  };
}
