import type { Log } from '../../../kernel/log.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { DurableWork } from './api.ts';

export interface ChangedAgentsDeps {
  readonly agents: Pick<AgentsApi, 'list' | 'find'>;
  readonly durable: Pick<DurableWork, 'resumeWaiting' | 'resumeAgent'>;
  /** Returns the models that an agent names; undefined is the default one. */
  readonly modelNamesOf: (agent: Agent) => readonly (string | undefined)[];
  readonly log: Log;
}

/** Resumes the waiting work of an agent that was resumed, or that uses other models since. */
export function createAgentChanges({ agents, durable, modelNamesOf, log }: ChangedAgentsDeps): (agentId: string) => void {
  const namesOf = (agent: Agent) => modelNamesOf(agent).join(' ');
  const namesBefore = new Map(agents.list().map((agent) => [agent.id, namesOf(agent)]));
  return (agentId) => {
    const agent = agents.find(agentId);
    const names = agent === undefined ? undefined : namesOf(agent);
    const hasOthers = names !== namesBefore.get(agentId);
    if (names === undefined) namesBefore.delete(agentId);
    else namesBefore.set(agentId, names);
    // Work for a deleted agent has nothing more to wait for.
    if (agent?.suspended === true) return;
    const resumed = [durable.resumeWaiting({ kind: 'agent', subject: agentId }), ...(hasOthers ? [durable.resumeAgent(agentId)] : [])];
    // Not awaited: a later check finds what a failure leaves behind.
    void Promise.all(resumed).catch((error: unknown) => log.error({ err: error, agentId }, 'Failed to resume work of a changed agent'));
  };
}
