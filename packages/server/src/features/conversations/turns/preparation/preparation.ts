import type { ToolPolicy, TurnOrigin } from '@gatehouse/contract';
import type { ToolBounds } from '../../../../kernel/call-context.ts';
import { type Clock, today } from '../../../../kernel/clock.ts';
import { countTokens } from '../../../../llm/count-tokens.ts';
import type { ModelInfo } from '../../../../llm/model.ts';
import { createMessageCapacity } from '../../../../runtime/plan-call.ts';
import { buildSystemPrompt } from '../../../../runtime/prompt.ts';
import { boundTools, restrictTools, selectTools } from '../../../../runtime/tool-policy.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { SkillsApi } from '../../../knowledge/skills/api.ts';
import { type ModelNames, primaryModel } from './resolve-target.ts';

/** The turn that a prompt is for. */
export interface PromptAbout {
  /** Authority of the turn. */
  readonly origin: TurnOrigin;
  /** Whether a person reads the answer and can be asked. */
  readonly attended: boolean;
  /** Locale of the author. */
  readonly locale?: string | undefined;
  /** Omits workspace files and the list of skills. */
  readonly light?: boolean | undefined;
}

/** What the model of a turn gets in addition to its messages. */
export interface Preparation {
  /** Returns the tools allowed by the policies of agent and origin, and by `policy` and `bounds` if given. */
  toolsFor(agent: Agent, origin: TurnOrigin, policy?: ToolPolicy, bounds?: ToolBounds): readonly Tool[];
  /** Returns the parts of an agent's system prompt, stable ones first. */
  systemPrompt(agent: Agent, tools: readonly Tool[], about: PromptAbout): readonly string[];
  /** Returns the tokens available to messages in a call of the first of these models. */
  historyCapacity(agent: Agent, models: readonly ModelInfo[], tools: readonly Tool[], system: readonly string[]): number;
  /** Returns the same for a turn that a user requests of the agent. */
  capacityOf(agent: Agent): number;
}

export interface PreparationDeps {
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly models: ModelNames;
  /** Returns all tools that an agent can see; the same array until one changes. */
  readonly toolsOf: (agent: Agent) => readonly Tool[];
  readonly skills: Pick<SkillsApi, 'promptPart'>;
  /** Returns the sections that the agent's workspace files add for this origin. */
  readonly promptFiles: (agent: Agent, origin: TurnOrigin) => string | undefined;
}

export function createPreparation({ clock, agents, models, toolsOf, skills, promptFiles }: PreparationDeps): Preparation {
  const messageCapacity = createMessageCapacity(countTokens);
  const preparation: Preparation = {
    toolsFor(agent, origin, policy, bounds) {
      const restricted = policy === undefined ? toolsOf(agent) : restrictTools(toolsOf(agent), policy);
      if (bounds === undefined) return selectTools(restricted, agent.config, origin);
      const others = bounds.agents.map((id) => agents.find(id)?.config);
      return selectTools(boundTools(restricted, bounds.policies, others, origin), agent.config, origin);
    },
    systemPrompt: (agent, tools, { origin, attended, locale, light }) =>
      buildSystemPrompt({
        agent: agent.config,
        tools,
        skills: light === true ? undefined : skills.promptPart(agent),
        files: light === true ? undefined : promptFiles(agent, origin),
        today: today(clock),
        attended,
        locale,
      }),
    historyCapacity: (agent, [model], tools, system) =>
      model === undefined ? 0 : messageCapacity({ model, maxTokens: agent.config.maxTokens, system, tools }),
    capacityOf(agent) {
      const tools = preparation.toolsFor(agent, 'rpc');
      const system = preparation.systemPrompt(agent, tools, { origin: 'rpc', attended: true });
      return preparation.historyCapacity(agent, [primaryModel(agent, models)], tools, system);
    },
  };
  return preparation;
}
