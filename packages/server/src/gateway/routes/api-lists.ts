import { AgentId, type ApiAgents, type ApiChannels, ConversationRef, PrintedSessionKey, SessionKeyObject } from '@gatehouse/contract';
import * as z from 'zod';
import type { Agent, AgentsApi } from '../../features/agents/agents/api.ts';
import type { SessionsApi } from '../../features/conversations/sessions/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { ModelInfo } from '../../llm/model.ts';
import type { HttpCall } from '../http-call.ts';
import { parseQuery, wholeNumber } from '../query.ts';
import { sendJson } from '../reply.ts';

const NoQuery = z.strictObject({});

const HistoryQuery = z
  .strictObject({
    conversationRef: ConversationRef.optional(),
    sessionKey: PrintedSessionKey.optional(),
    channelId: SessionKeyObject.shape.channelId.optional(),
    agentId: AgentId.optional(),
    limit: wholeNumber(1, 200).default(50),
    offset: wholeNumber(0, 1e9).default(0),
  })
  .refine((query) => query.channelId === undefined || (query.sessionKey === undefined && query.conversationRef === undefined), {
    path: ['channelId'],
    message: 'expected without sessionKey and conversationRef',
  });

/** `GET /api/agents`, `GET /api/channels` and `GET /api/chat/history` (decisions §4). */
export function createApiListRoutes(deps: {
  readonly agents: AgentsApi;
  /** Fails when no configured provider has the model of the agent. */
  readonly primaryModel: (agent: Agent) => ModelInfo;
  readonly said: SessionsApi['said'];
  readonly listens: boolean;
}): Readonly<Record<'agents' | 'channels' | 'history', (call: HttpCall) => void | Promise<void>>> {
  function modelOf(agent: Agent): ModelInfo | undefined {
    try {
      return deps.primaryModel(agent);
    } catch (error) {
      if (error instanceof AppError && error.code === 'precondition_failed') return undefined;
      throw error;
    }
  }

  return {
    agents(call) {
      parseQuery(NoQuery, call);
      const allowed = call.identity?.agents;
      const agents = deps.agents
        .list()
        .filter((agent) => allowed === undefined || allowed.includes(agent.id))
        .map((agent): ApiAgents['agents'][number] => {
          const model = modelOf(agent);
          return {
            id: agent.id,
            name: agent.config.name,
            provider: model?.provider ?? null,
            model: model?.modelId ?? null,
            status: agent.suspended ? 'suspended' : 'active',
          };
        });
      sendJson(call, 200, { agents } satisfies ApiAgents);
    },

    channels(call) {
      parseQuery(NoQuery, call);
      // While the gateway drains it answers with 503 before this is asked.
      const gateway = { type: 'gateway', name: 'gateway', enabled: deps.listens, status: deps.listens ? 'connected' : 'disconnected' } as const;
      sendJson(call, 200, { channels: [gateway] } satisfies ApiChannels);
    },

    async history(call) {
      const { channelId, ...query } = parseQuery(HistoryQuery, call);
      const context = call.context();
      const sessionKey = channelId === undefined ? query.sessionKey : { userId: context.identity.tokenId, channelId };
      sendJson(call, 200, await deps.said({ ...query, sessionKey }, context));
    },
  };
}
