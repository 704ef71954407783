import * as z from 'zod';
import { once } from '../once.ts';
import { AgentId, conversationIdentity } from '../shared/session.ts';
import { pageResult } from '../shared/paging.ts';
import { EpochMs } from '../shared/turn.ts';

/** Answer of `GET /api/agents`: the agents that the token may reach. */
export const ApiAgents = once(() =>
  z
    .strictObject({
      agents: z.array(
        z.strictObject({
          id: AgentId,
          name: z.string(),
          provider: z.string().nullable().describe('Null when no configured provider has the model of the agent.'),
          model: z.string().nullable(),
          status: z.enum(['active', 'suspended']),
        }),
      ),
    })
    .meta({ id: 'ApiAgents' }),
);
export type ApiAgents = z.output<ReturnType<typeof ApiAgents>>;

/** Answer of `GET /api/channels`. */
export const ApiChannels = once(() =>
  z
    .strictObject({
      channels: z.array(
        z.strictObject({
          type: z.string(),
          name: z.string(),
          enabled: z.boolean(),
          status: z.enum(['connected', 'disconnected']),
        }),
      ),
    })
    .meta({ id: 'ApiChannels' }),
);
export type ApiChannels = z.output<ReturnType<typeof ApiChannels>>;

/** Answer of `GET /api/chat/history`: messages, oldest first, without the tools in between. */
export const ApiChatHistory = once(() =>
  z
    .strictObject({
      ...conversationIdentity,
      messages: z.array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.string(), timestamp: EpochMs })),
      ...pageResult,
    })
    .meta({ id: 'ApiChatHistory' }),
);
export type ApiChatHistory = z.output<ReturnType<typeof ApiChatHistory>>;
