import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { countTokens } from '../../../../llm/count-tokens.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { Preparation } from './preparation.ts';

/** `agent.getPrompt`: shows what the model of a conversation gets before its messages. */
export function createPromptMethod(deps: {
  readonly agents: Pick<AgentsApi, 'usable'>;
  readonly preparation: Pick<Preparation, 'toolsFor' | 'systemPrompt'>;
  /** Checks whether files of the prompt have changed. */
  readonly refreshPrompt: (agent: Agent) => Promise<void> | undefined;
  readonly hideSecrets: (text: string) => string;
}): HandlersOf<'agent.getPrompt'> {
  const { agents, preparation } = deps;
  return {
    'agent.getPrompt': async ({ agentId }, call) => {
      const agent = agents.usable(agentId, call);
      await deps.refreshPrompt(agent);
      const tools = preparation.toolsFor(agent, 'api');
      const parts = preparation.systemPrompt(agent, tools, { origin: 'api', attended: true });
      return {
        agentId: agent.id,
        agentName: agent.config.name,
        parts: parts.map((text) => ({ text: deps.hideSecrets(text), tokens: countTokens(text) })),
        tools: tools.map(({ name }) => name),
      };
    },
  };
}
