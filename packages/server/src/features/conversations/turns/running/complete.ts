import type { CallContext } from '../../../../kernel/call-context.ts';
import { newId } from '../../../../kernel/ids.ts';
import { countTokens } from '../../../../llm/count-tokens.ts';
import type { ModelInfo, ModelMessage } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import { offeredTools } from '../../../../runtime/client-tools.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import { createCountFixed } from '../../../../runtime/plan-call.ts';
import { countMessage } from '../../../../runtime/message-tokens.ts';
import { toolSpec } from '../../../../runtime/tool-spec.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { RecallApi } from '../../../knowledge/memory/api.ts';
import type { ConversationAddress, SessionsApi } from '../../sessions/api.ts';
import type { CompletionRequest, TurnsApi } from '../api.ts';
import type { TurnEntrance } from '../lanes/turn-entrance.ts';
import { checkCompletion, fenceCompletion, type FencedCompletion } from '../messages/completion.ts';
import { showResults, fittingModels, mediaIn } from '../messages/media-support.ts';
import type { Preparation } from '../preparation/preparation.ts';
import { type ModelAliases, modelsFor, resolveTarget } from '../preparation/resolve-target.ts';
import type { InspectText } from './converse.ts';
import { partOfTurn } from './turn-input.ts';
import type { TurnRunner } from './turn-runner.ts';

export interface CompleteDeps {
  readonly agents: AgentsApi;
  readonly models: Models;
  readonly sessions: Pick<SessionsApi, 'target'>;
  readonly preparation: Preparation;
  readonly refreshPrompt: (agent: Agent) => Promise<void> | undefined;
  readonly memory: Pick<RecallApi, 'recall'>;
  readonly fence: FenceText;
  readonly inspect: InspectText;
  readonly v1Tools: () => 'agent' | 'none';
  /** Model names that `/v1` requests may use instead of those of the catalog. */
  readonly modelAliases: () => ModelAliases;
}

const countFixed = createCountFixed(countTokens);

/** Creates the completions of `/v1`: their callers send the whole conversation and keep it themselves. */
export function createCompletions(
  deps: CompleteDeps,
  entrance: TurnEntrance,
  runner: Pick<TurnRunner, 'run'>,
): Pick<TurnsApi, 'complete' | 'countInput'> {
  const { agents, preparation } = deps;

  /** Checks a completion and finds the agent that answers it. */
  function admit(request: CompletionRequest, call: CallContext) {
    entrance.assertOpen();
    checkCompletion(request);
    const chosen = resolveTarget(deps.modelAliases(), request.model, agents, deps.models, call.identity.agents);
    return { chosen, agent: agents.usable(chosen.agentId, call), fenced: fenceCompletion(request, deps.fence) };
  }

  /** Chooses the models of an agent that can answer the request, and shows them its messages; throws `invalid_params` when its first one cannot. */
  function chooseModels(agent: Agent, wanted: ModelInfo | undefined, request: CompletionRequest, fenced: FencedCompletion) {
    const { history = [], clientTools, options } = request;
    const candidates = modelsFor(agent, deps.models, wanted);
    const [primary] = candidates;
    const shown = (messages: readonly ModelMessage[]) => (primary === undefined ? messages : showResults(messages, primary));
    const sent = { history: shown(history), brought: shown(fenced.messages) };
    const hasOptions = options !== undefined || clientTools !== undefined;
    const asked = hasOptions ? { options, tools: clientTools !== undefined && clientTools.length > 0 } : undefined;
    const media = mediaIn([...sent.history, ...sent.brought]);
    return { ...sent, models: fittingModels(candidates, { media, mediaParam: 'messages', asked }, deps.models.unsupported) };
  }

  /** Chooses tools and writes the prompt. */
  async function equip(agent: Agent, { clientTools, options }: CompletionRequest, fenced: FencedCompletion, { identity }: CallContext) {
    const refreshing = deps.refreshPrompt(agent);
    if (refreshing !== undefined) await refreshing;
    const offersOwn = (identity.compat?.tools ?? deps.v1Tools()) === 'agent';
    const tools = offersOwn ? offeredTools(preparation.toolsFor(agent, 'v1'), clientTools, options?.toolChoice) : [];
    return { tools, system: [...preparation.systemPrompt(agent, tools, { origin: 'v1', attended: true }), ...fenced.system] };
  }

  return {
    async complete(request, call, sink) {
      const { chosen, agent: named, fenced } = admit(request, call);
      const target = await deps.sessions.target(completionAddress(request, named.id), call);
      const about = { agentId: named.id, principalId: call.identity.principalId, conversationRef: target.ref, traceId: call.traceId };
      // System texts are instructions of the authenticated client.
      for (const { role, content } of request.messages)
        if (role !== 'system' && role !== 'developer')
          deps.inspect(content, { source: role === 'user' ? 'user_input' : 'external_content', ...about });
      // Refused before it waits.
      const chosenEarly = chooseModels(named, chosen.model, request, fenced);
      return entrance.enter({ target, agent: named, kept: false }, call, async (admitted) => {
        // Reload after waiting for the agent's group, because the agent may have been suspended, deleted or changed.
        const agent = agents.usable(chosen.agentId, call);
        const { models, history, brought } = agent === named ? chosenEarly : chooseModels(agent, chosen.model, request, fenced);
        const { tools, system } = await equip(agent, request, fenced, call);
        const room = models[0]?.contextWindow ?? 0;
        const id = newId('tn');
        const part = partOfTurn({}, { id, traceId: call.traceId });
        const remembering = deps.memory.recall({ ...about, part, question: fenced.userText, room, signal: admitted.call.signal }, agent.config, 'v1');
        const { temperature, clientTools, options, alongside } = request;
        return runner.run(
          {
            id,
            target,
            agent,
            origin: 'v1',
            ask: { models, system, tools, clientTools, options, temperature, maxTokens: answerLength(request, models[0]) },
            history,
            brought,
            whole: request.mayShorten !== true,
            question: { text: fenced.userText },
            remembered: remembering === undefined ? undefined : await remembering,
            recalls: remembering !== undefined,
            kept: false,
            alongside,
          },
          admitted,
          sink,
        );
      });
    },

    async countInput(request, call) {
      const { chosen, agent, fenced } = admit(request, call);
      const { history, brought } = chooseModels(agent, chosen.model, request, fenced);
      const { tools, system } = await equip(agent, request, fenced, call);
      const fixed = countFixed(system, [...tools.map(toolSpec), ...(request.clientTools ?? [])]);
      return [...history, ...brought].reduce((sum, message) => sum + countMessage(message, countTokens), fixed);
    },
  };
}

function answerLength({ maxTokens, maxTokensIsBound }: CompletionRequest, model: ModelInfo | undefined): number | undefined {
  return maxTokensIsBound === true && maxTokens !== undefined && model !== undefined ? Math.min(maxTokens, model.maxTokens) : maxTokens;
}

/** Returns the address of http-gateway.md §2.5; the peer makes every completion a separate conversation. */
function completionAddress(request: CompletionRequest, agentId: string): ConversationAddress {
  return { agentId, sessionKey: { userId: 'compat-api', channelId: request.channelId ?? 'compat', peerId: request.completionId } };
}
