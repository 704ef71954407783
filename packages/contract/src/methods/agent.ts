import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { operationTypes } from '../shared/agent-config.ts';
import { AgentId, conversationAddress, conversationIdentity } from '../shared/session.ts';
import { FinishReason, TokensUsed, TurnCostUsd } from '../shared/turn.ts';
import { FailureCause } from '../shared/waiting.ts';

const executeParams = z.strictObject({ message: z.string().min(1), ...conversationAddress });
const executeResult = once(() =>
  z
    .strictObject({
      response: z.string(),
      tokensUsed: TokensUsed,
      cachedInput: z.int().min(0).optional().describe("Part of `tokensUsed.input` that was read from the provider's prompt cache."),
      costUsd: TurnCostUsd,
      finishReason: FinishReason,
      ...conversationIdentity,
      traceId: z.string(),
      failure: z
        .strictObject({ message: z.string(), kind: z.string(), retryAfterMs: z.int().min(0).optional(), cause: FailureCause().optional() })
        .optional()
        .describe('Why the turn did not complete its work; absent when it did.'),
    })
    .meta({ id: 'TurnReply' }),
);
const executeExample = {
  params: { message: 'What is a gateway?', sessionKey: { userId: 'ada', channelId: 'desk' } },
  result: {
    response: 'A gateway connects clients to services.',
    tokensUsed: { input: 120, output: 9, total: 129 },
    cachedInput: 64,
    costUsd: 0.000138,
    finishReason: 'stop' as const,
    conversationRef: 'cv_0000000000000000000000000000000000000000000',
    sessionKey: 'ada:desk',
    agentId: 'default',
    traceId: '5b8aa5a2d2c872e8321cf37308d69df2',
  },
};

export const agent = {
  'agent.execute': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Runs one full agent turn and returns its answer.',
    description:
      'A fresh `sessionKey` creates the conversation; without an address the conversation of the calling token is used. ' +
      'Turns of one conversation run one after the other (50 may wait). The result is sent after the messages, the usage and the turn row are committed and synced. ' +
      'A turn that ends for another reason than `stop` is a result, not an error: read `finishReason`.',
    params: () => executeParams,
    result: () => executeResult(),
    errors: ['not_found', 'denied', 'rate_limited', 'unavailable'],
    examples: [executeExample],
    since: '0.1.0',
  }),
  'agent.stream': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Does the same as `agent.execute`; JSON-RPC does not stream deltas, so the server logs a warning and answers as a whole.',
    description: 'For deltas use the streamed chat routes of the HTTP gateway.',
    params: () => executeParams,
    result: () => executeResult(),
    errors: ['not_found', 'denied', 'rate_limited', 'unavailable'],
    examples: [executeExample],
    since: '0.1.0',
  }),
  'agent.cacheStats': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns how much of the input the providers served from their prompt caches, and what that saved.',
    description: 'Costs are in US dollars. `cacheHitRate` is cached input tokens over all input tokens, 0 to 1.',
    params: () =>
      z.strictObject({
        sinceMs: z.int().min(1).optional().describe('Length of the window that ends now, in milliseconds; all retained calls otherwise.'),
        agentId: AgentId.optional(),
      }),
    result: () =>
      z.strictObject({
        providers: z.array(
          z.strictObject({
            provider: z.string(),
            model: z.string(),
            callCount: z.int().min(0),
            inputTokens: z.int().min(0),
            cacheReadTokens: z.int().min(0),
            cacheWriteTokens: z.int().min(0),
            totalCost: z.number().min(0),
            totalCacheSaved: z.number(),
            cacheHitRate: z.number().min(0).max(1),
          }),
        ),
        totalCacheSaved: z.number(),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { sinceMs: 86400000 },
        result: {
          providers: [
            {
              provider: 'anthropic',
              model: 'claude',
              callCount: 3,
              inputTokens: 9000,
              cacheReadTokens: 6000,
              cacheWriteTokens: 1500,
              totalCost: 0.021,
              totalCacheSaved: 0.0162,
              cacheHitRate: 0.667,
            },
          ],
          totalCacheSaved: 0.0162,
        },
      },
    ],
    since: '0.1.0',
  }),
  'agent.getPrompt': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the system prompt that a conversation with the agent begins with now, and the tools that are offered with it.',
    description:
      'It is made as for a message of `POST /api/chat`, without a model call: configuration, files of the workspace, skills and date. Secrets are removed. Memories and matching skills are placed before each question, and are not part of it.',
    params: () => z.strictObject({ agentId: AgentId.optional().describe('The default agent otherwise.') }),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        agentName: z.string(),
        parts: z
          .array(z.strictObject({ text: z.string(), tokens: z.int().min(0).describe('Estimated.') }))
          .describe('In order, the stable ones first.'),
        tools: z.array(z.string()).describe('Names of the offered tools.'),
      }),
    errors: ['not_found', 'precondition_failed'],
    examples: [
      {
        params: { agentId: 'default' },
        result: { agentId: 'default', agentName: 'Gate', parts: [{ text: 'You are Gate.', tokens: 5 }], tools: ['read', 'write'] },
      },
    ],
    since: '0.1.0',
  }),
  'agent.getOperationModels': method({
    scope: 'admin',
    risk: 'read',
    summary: "Returns the agent's primary model and, for each kind of work, the selected model and the reason.",
    params: () => z.strictObject({ agentId: AgentId.optional().describe('The default agent otherwise.') }),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        primaryModel: z.string().describe('provider/modelId'),
        primaryProvider: z.string(),
        providerFamily: z.string(),
        tieringActive: z.boolean(),
        operations: z.array(
          z.strictObject({
            operationType: z
              .enum([...operationTypes, 'embedding'])
              .describe('`embedding` is section `embedding`, which applies to all agents, and is present when it is configured.'),
            model: z.string().describe('provider/modelId'),
            provider: z.string(),
            modelId: z.string(),
            source: z.enum(['config', 'default']),
            timeoutMs: z.int().min(1),
            tieringActive: z.boolean(),
            crossProvider: z.boolean(),
            apiKeyConfigured: z.boolean(),
          }),
        ),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'default' },
        result: {
          agentId: 'default',
          primaryModel: 'local/test-model',
          primaryProvider: 'local',
          providerFamily: 'openai-compatible',
          tieringActive: false,
          operations: [
            {
              operationType: 'interactive',
              model: 'local/test-model',
              provider: 'local',
              modelId: 'test-model',
              source: 'default',
              timeoutMs: 180000,
              tieringActive: false,
              crossProvider: false,
              apiKeyConfigured: true,
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
};
