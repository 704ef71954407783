import type { RouteName } from '@gatehouse/contract';
import { AppError } from '../kernel/app-error.ts';
import type { HttpCall } from './http-call.ts';
import { sendError } from './reply.ts';
import { createRpcRoute } from './rpc/http.ts';
import type { Dispatch } from './rpc/dispatch.ts';
import { createDocumentRoute } from './routes/documents.ts';
import { createHealthRoute } from './routes/health.ts';
import { createChatRoute } from './routes/v1-chat.ts';
import { createEmbeddingsRoute } from './routes/v1-embeddings.ts';
import { createModelRoutes } from './routes/v1-models.ts';
import type { GatewayDeps } from './app.ts';
import type { RateLimiter } from './limits.ts';

/** One handler per declared route; a forgotten one is a compile error. */
export type RouteHandlers = { readonly [R in RouteName]: (call: HttpCall) => void | Promise<void> };

export function createRouteHandlers(
  deps: GatewayDeps,
  parts: { readonly dispatch: Dispatch; readonly limiter: RateLimiter; readonly draining: () => boolean },
): RouteHandlers {
  const { turns, clock, log, models, agents, embedder, documents, health } = deps;
  const bodyLimit = deps.config.httpBodyLimitBytes;
  const healthRoute = createHealthRoute({ health, draining: parts.draining });
  const modelRoutes = createModelRoutes({ models, agents });
  return {
    health: healthRoute,
    apiHealth: healthRoute,
    chatCompletions: createChatRoute({ turns, bodyLimit, clock, log, keepAliveMs: deps.keepAliveMs }),
    models: modelRoutes.list,
    model: modelRoutes.get,
    embeddings: createEmbeddingsRoute({ embedder, bodyLimit }),
    openapi: createDocumentRoute(documents.openapi),
    openrpc: createDocumentRoute(documents.openrpc),
    rpc: createRpcRoute({ dispatch: parts.dispatch, bodyLimit, limiter: parts.limiter }),
    ws(call) {
      call.setHeader('upgrade', 'websocket');
      sendError(call, new AppError('invalid_envelope', 'This path speaks WebSocket: connect with Upgrade: websocket'), log, 426);
    },
  };
}
