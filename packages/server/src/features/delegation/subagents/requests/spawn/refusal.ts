import type { EventPayload } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../../kernel/call-context.ts';
import type { Agent } from '../../../../agents/agents/api.ts';
import type { AutonomyApi } from '../../../autonomy/api.ts';
import type { Live } from '../../../../../kernel/config/live.ts';
import type { AgentToAgentConfig } from '../../config.ts';

interface Refusal {
  readonly reason: EventPayload<'session:sub_agent_spawn_rejected'>['reason'];
  readonly error: unknown;
}

/** Returns the nesting depth of a sub-agent that the caller starts. */
export const depthOf = ({ agentCaller }: CallContext): number => (agentCaller?.turn?.run?.depth ?? 0) + 1;

/** Returns why the caller may not start a sub-agent now: policy, capability, rate guard or depth. `asking` is the calling agent. */
export function refusalOf(
  { config, autonomy }: { readonly config: Live<AgentToAgentConfig>; readonly autonomy: Pick<AutonomyApi, 'admit'> },
  { agent, asking }: { readonly agent: Agent; readonly asking: Agent | undefined },
  call: CallContext,
): Refusal | undefined {
  if (!isAllowed(config.current, agent, asking))
    return { reason: 'not_allowed', error: new AppError('denied', `Sub-agents of agent ${agent.id} are not allowed here`) };
  try {
    autonomy.admit('orch:spawn', asking ?? agent, call);
  } catch (error) {
    return { reason: error instanceof AppError && error.code === 'rate_limited' ? 'guard' : 'capability', error };
  }
  const { maxSpawnDepth } = config.current.subagentContext;
  if (depthOf(call) <= maxSpawnDepth) return undefined;
  const message = `Sub-agents may be nested ${maxSpawnDepth} deep (security.agentToAgent.subagentContext.maxSpawnDepth)`;
  return { reason: 'depth_exceeded', error: new AppError('precondition_failed', message) };
}

function isAllowed(config: AgentToAgentConfig, agent: Agent, asking: Agent | undefined): boolean {
  if (asking === undefined) return true;
  if (!config.enabled) return false;
  return agent.id === asking.id || config.allowAgents.length === 0 || config.allowAgents.includes(agent.id);
}
