import type { ModelWork } from '../features/access/budgets/api.ts';
import type { Agent, AgentsApi } from '../features/agents/agents/api.ts';
import { createContext } from '../features/conversations/context/context.ts';
import { countCompaction } from '../features/conversations/sessions/changes/reset-store.ts';
import { createSessions } from '../features/conversations/sessions/sessions.ts';
import { createKeptLanes } from '../features/conversations/turns/lanes/kept-lanes.ts';
import { createPreparation } from '../features/conversations/turns/preparation/preparation.ts';
import { conversationModelOf } from '../features/conversations/turns/preparation/resolve-target.ts';
import { promptFilesFor } from '../features/environment/workspace/setup/prompt-files.ts';
import type { Lanes } from '../kernel/lane.ts';
import type { Models } from '../llm/models.ts';
import type { Fence } from '../runtime/fence.ts';
import type { Tool } from '../runtime/tool.ts';
import { deleteConversation } from '../transactions/delete-conversation.ts';
import { resetConversation, resetSession } from '../transactions/reset-conversation.ts';
import type { Assembly } from './assembly.ts';
import type { Late } from './late.ts';
import type { Stops } from './stops.ts';
import type { Tooling } from './tooling.ts';

export interface ConversationsWiring {
  readonly agents: AgentsApi;
  readonly models: Models;
  readonly work: ModelWork;
  readonly fence: Fence;
  readonly lanes: Lanes;
  readonly tooling: Pick<Tooling, 'skills' | 'workspace'>;
  /** Returns all tools that an agent can see; the same array until one changes. */
  readonly toolsOf: (agent: Agent) => readonly Tool[];
  readonly stops: Late<Stops>;
  readonly forgetTraces: (conversationRef: string) => Promise<void>;
}
export type Conversations = ReturnType<typeof wireConversations>;

/** Wires conversations: what a model sees of them, how they are read and changed, and the lanes that interrupted turns keep. */
export function wireConversations({ building, core, clock, live }: Assembly, { agents, models, lanes, stops, ...deps }: ConversationsWiring) {
  const { skills, workspace } = deps.tooling;
  const preparation = createPreparation({
    clock,
    agents,
    models,
    toolsOf: deps.toolsOf,
    skills: skills.api,
    promptFiles: (agent, origin) => promptFilesFor(origin, workspace.api.promptFiles(agent)),
  });
  const context = building.use(
    createContext({ ...core('context'), fence: deps.fence, agents, work: deps.work, countCompaction, capacityOf: preparation.capacityOf }),
  );
  const sessions = building.use(
    createSessions({
      ...core('sessions'),
      agents,
      modelOf: (agentId) => conversationModelOf(agentId, agents, models),
      deleteConversation,
      resetSession,
      resetConversation,
      forgetTraces: deps.forgetTraces,
      compact: context.api.compact,
      work: deps.work,
      fence: deps.fence,
      titles: live(({ models: { titles } }) => titles),
      lanes,
      cleared: (ref) => stops.value.messagesRemoved(ref),
      stop: (ref) => stops.value.conversationDeleted(ref),
      clearing: (ref) => stops.value.conversationCleared(ref),
    }),
  );
  const keptLanes = createKeptLanes(lanes, (ref) => stops.value.conversationFreed(ref), sessions.entered);
  return { preparation, context, sessions, keptLanes };
}
