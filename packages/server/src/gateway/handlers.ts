import type { RouteName } from '@gatehouse/contract';
import { AppError } from '../kernel/app-error.ts';
import type { RateLimiter } from '../kernel/limiter.ts';
import type { HttpCall } from './http-call.ts';
import { sendError } from './reply.ts';
import { createRpcRoute } from './rpc/http.ts';
import type { Dispatch } from './rpc/dispatch.ts';
import type { DashboardRoutes } from './routes/dashboard.ts';
import { sendFrame } from './routes/dashboard-frame.ts';
import type { EventStreams } from './routes/event-stream.ts';
import { createApiChatRoute } from './routes/api-chat.ts';
import { createApiChatStreamRoute } from './routes/api-chat-stream.ts';
import { createActivityRoute } from './routes/activity.ts';
import { createApiListRoutes } from './routes/api-lists.ts';
import { createApiMemoryRoutes } from './routes/api-memory.ts';
import { createDocumentRoute } from './routes/documents.ts';
import { createMetricsRoute } from './routes/metrics.ts';
import { createHealthRoute } from './routes/health.ts';
import { createOAuthCallbackRoute } from './routes/oauth-callback.ts';
import { createHookRoutes } from './routes/hooks.ts';
import { createMediaRoutes } from './routes/media.ts';
import type { RequestLimits } from './request-limits.ts';
import type { McpRoute } from './mcp/route.ts';
import { createCountTokensRoute } from './routes/messages/count-tokens.ts';
import { createMessagesRoute } from './routes/messages/create-message.ts';
import { createCompactRoute, createResponseTokensRoute } from './routes/responses/condense.ts';
import { createResponseRoute } from './routes/responses/create-response.ts';
import { createStoredResponseRoutes } from './routes/responses/stored-responses.ts';
import { createChatRoute } from './routes/v1-chat.ts';
import { createEmbeddingsRoute } from './routes/v1-embeddings.ts';
import { createV1MediaRoutes } from './routes/v1-media.ts';
import { createModelRoutes } from './routes/v1-models.ts';
import type { GatewayDeps } from './app.ts';

/** One handler per declared route; a missing one is a compile error. */
export type RouteHandlers = { readonly [R in RouteName]: (call: HttpCall) => void | Promise<void> };

export function createRouteHandlers(
  deps: GatewayDeps,
  parts: {
    readonly dispatch: Dispatch;
    readonly limiter: RateLimiter;
    readonly limits: Pick<RequestLimits, 'refusalOf'>;
    readonly dashboard: DashboardRoutes;
    readonly eventStreams: EventStreams;
    readonly mcp: McpRoute;
    readonly draining: () => boolean;
  },
): RouteHandlers {
  const { turns, responses, clock, log, models, agents, embed, documents, health } = deps;
  const bodyLimit = () => deps.config.current.httpBodyLimitBytes;
  const fields = () => deps.config.current.compat.fields;
  const healthRoute = createHealthRoute({ health, draining: parts.draining });
  const mediaRoutes = createMediaRoutes(deps);
  const modelRoutes = createModelRoutes({ models, agents, embeddingModel: deps.embeddingModel });
  const v1Media = createV1MediaRoutes({ multimodal: deps.multimodal, agentOf: deps.payerOf, bodyLimit, clock });
  const storedResponses = createStoredResponseRoutes({ responses });
  const chat = { turns, receipts: deps.receipts, bodyLimit, clock, log, keepAliveMs: deps.keepAliveMs };
  const lists = createApiListRoutes({ agents, primaryModel: deps.primaryModel, said: deps.sessions.said, listens: deps.config.current.enabled });
  const memory = createApiMemoryRoutes(deps.handlers);
  const hooks = createHookRoutes(deps);
  const upgradeOnly = (call: HttpCall): void => {
    call.setHeader('upgrade', 'websocket');
    sendError(call, new AppError('invalid_envelope', 'This path speaks WebSocket: connect with Upgrade: websocket'), log, 426);
  };
  return {
    apiChat: createApiChatRoute(chat),
    apiChatStream: createApiChatStreamRoute(chat),
    apiChatHistory: lists.history,
    apiAgents: lists.agents,
    apiChannels: lists.channels,
    apiMemorySearch: memory.search,
    apiMemoryStats: memory.stats,
    events: parts.eventStreams.route,
    activity: createActivityRoute(deps),
    health: healthRoute,
    apiHealth: healthRoute,
    chatCompletions: createChatRoute({ turns, fields, bodyLimit, clock, log, keepAliveMs: deps.keepAliveMs }),
    models: modelRoutes.list,
    model: modelRoutes.get,
    embeddings: createEmbeddingsRoute({ embed, model: deps.embeddingModel, fields, bodyLimit }),
    transcriptions: v1Media.transcriptions,
    speech: v1Media.speech,
    images: v1Media.images,
    messages: createMessagesRoute({ turns, bodyLimit, clock, log, keepAliveMs: deps.keepAliveMs }),
    countTokens: createCountTokensRoute({ turns, bodyLimit }),
    createResponse: createResponseRoute({ turns, responses, bodyLimit, clock, log, keepAliveMs: deps.keepAliveMs }),
    responsesSocket: upgradeOnly,
    compactResponse: createCompactRoute({ turns, responses, bodyLimit, clock }),
    responseTokens: createResponseTokensRoute({ turns, responses, bodyLimit }),
    responseInputItems: storedResponses.inputItems,
    cancelResponse: storedResponses.cancel,
    response: storedResponses.get,
    deleteResponse: storedResponses.delete,
    dashboard: parts.dashboard.page,
    dashboardAsset: parts.dashboard.asset,
    dashboardFrame: sendFrame,
    mediaUpload: mediaRoutes.upload,
    mediaList: mediaRoutes.list,
    media: mediaRoutes.get,
    mediaInfo: mediaRoutes.info,
    mediaDelete: mediaRoutes.remove,
    mcp: parts.mcp.serve,
    mcpStream: parts.mcp.serve,
    mcpEnd: parts.mcp.serve,
    webhook: hooks.strict,
    hook: hooks.mapped,
    oauthCallback: createOAuthCallbackRoute(deps.authorization),
    metrics: createMetricsRoute(deps.metrics),
    asyncapi: createDocumentRoute(documents.asyncapi),
    openapi: createDocumentRoute(documents.openapi),
    openrpc: createDocumentRoute(documents.openrpc),
    rpc: createRpcRoute({
      dispatch: parts.dispatch,
      bodyLimit,
      limiter: parts.limiter,
      refusalOf: (tokenId, cost) => parts.limits.refusalOf(tokenId, cost),
    }),
    ws: upgradeOnly,
  };
}
