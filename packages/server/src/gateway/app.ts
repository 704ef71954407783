import { derived, type Live } from '../kernel/config/live.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Health } from '@gatehouse/contract';
import type { Agent, AgentsApi } from '../features/agents/agents/api.ts';
import type { McpAuthorizationApi } from '../features/agents/mcp/api.ts';
import type { ReceiptsApi } from '../features/conversations/receipts/api.ts';
import type { SessionsApi } from '../features/conversations/sessions/api.ts';
import type { EventsApi } from '../features/operations/events/api.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import type { MultimodalApi } from '../features/environment/multimodal/api.ts';
import type { ResponsesApi } from '../features/conversations/responses/api.ts';
import type { TransportMeter, TransportTracer } from '../features/operations/observability/api.ts';
import type { TokensApi } from '../features/access/tokens/api.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { WebhooksApi } from '../features/unattended/webhooks/api.ts';
import type { CallContext } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { Handlers } from '../kernel/handlers.ts';
import type { Log } from '../kernel/log.ts';
import { settledWithin } from '../kernel/timers.ts';
import type { ModelInfo } from '../llm/model.ts';
import type { Models } from '../llm/models.ts';
import { createAddressOf } from './address.ts';
import { createAuthenticator } from './auth.ts';
import type { GatewayConfig } from './config.ts';
import { createRouteHandlers } from './handlers.ts';
import type { HttpCall } from './http-call.ts';
import { protocolFailure, writeRaw } from './listener.ts';
import type { McpEndpoint } from './mcp/endpoint.ts';
import type { McpOffer } from './mcp/offer.ts';
import { createMcpRoute } from './mcp/route.ts';
import { OpenCalls } from './open-calls.ts';
import { listen, openServer } from './open-server.ts';
import { createOriginPolicy } from './origin.ts';
import { owner } from './owner.ts';
import { RequestLimits, type RequestLimitsDeps } from './request-limits.ts';
import { createRouter } from './router.ts';
import { createDashboardRoutes } from './routes/dashboard.ts';
import { createEventStreams } from './routes/event-stream.ts';
import type { EmbedTexts } from './routes/v1-embeddings.ts';
import { createDispatch, refuseOverload } from './rpc/dispatch.ts';
import { createServeRequest, createRequestListener } from './serve-request.ts';
import { createUpgrades } from './upgrades.ts';

export interface GatewayDeps {
  readonly config: Live<GatewayConfig>;
  readonly handlers: Handlers;
  readonly tokens: TokensApi;
  /** Limits of requests of a token and of its person. */
  readonly requestLimits?: RequestLimitsDeps['requestLimits'];
  readonly turns: TurnsApi;
  readonly media: MediaLibrary;
  readonly responses: ResponsesApi;
  readonly receipts: ReceiptsApi;
  readonly webhooks: WebhooksApi;
  readonly authorization: McpAuthorizationApi;
  readonly events: EventsApi;
  readonly sessions: Pick<SessionsApi, 'said' | 'target'>;
  readonly models: Models;
  readonly agents: AgentsApi;
  /** Version of the program, as reported to MCP clients. */
  readonly version: string;
  /** What MCP clients are offered; the agents and their workspaces when absent. */
  readonly mcpOffer?: McpOffer | undefined;
  /** Fails with `precondition_failed` when no configured provider has the model of the agent. */
  readonly primaryModel: (agent: Agent) => ModelInfo;
  /** Absent: `/v1/embeddings` answers 404. */
  readonly embed: EmbedTexts | undefined;
  /** The model that `embed` uses; listed by `/v1/models`. */
  readonly embeddingModel?: { readonly provider: string; readonly model: string } | undefined;
  /** Speech and images of `/v1`; these routes answer 404 while nothing is configured. */
  readonly multimodal?: MultimodalApi | undefined;
  /** The agent that pays for calls of `/v1` that run no turn. */
  readonly payerOf: (call: CallContext) => string;
  readonly health: () => Health | Promise<Health>;
  /** Built at the first request for each. */
  readonly documents: Readonly<Record<'openapi' | 'openrpc' | 'asyncapi', () => object | Promise<object>>>;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** What happens when a result does not match its declaration: see `createDispatch`. */
  readonly badResults?: 'throw' | 'log';
  /** Base of relative paths in `gateway.tls`. */
  readonly homeDir: string;
  /** Counts requests and connections; nothing is counted when absent. */
  readonly meter?: TransportMeter | undefined;
  /** Text of `/metrics`. */
  readonly metrics: () => Promise<string>;
  readonly tracer?: TransportTracer | undefined;
  /** Why new work is refused now; undefined while all is well. */
  readonly overload?: () => string | undefined;
  /** Silence after which a stream sends a comment; 15 s by default. */
  readonly keepAliveMs?: number;
}

export interface Gateway extends AsyncDisposable {
  /** Opens the listener; fails with `ListenError`. `address` is a URL. */
  listen(): Promise<{ readonly address: string }>;
  connections(): { readonly http: number; readonly websocket: number };
  /** Number of open responses that are event streams. */
  eventStreams(): number;
  /** Answers a request on the owner-only socket: no token required, no limits. A token that is sent anyway is checked, as on the listener. */
  serveOwner(incoming: IncomingMessage, outgoing: ServerResponse): void;
  /** Refuses new work (503), also to probes; closes idle sockets with 1001; resolves when nothing runs any more or after `timeoutMs`. */
  drain(timeoutMs: number): Promise<void>;
}

/** Creates all endpoints of the daemon: HTTP routes, JSON-RPC over HTTP and WebSocket. */
export function createGateway(deps: GatewayDeps): Gateway {
  const { tokens, clock, meter } = deps;
  const config = deps.config.current;
  const currentAddressOf = derived(deps.config, ({ trustedProxies }) => createAddressOf(trustedProxies));
  const addressOf = (incoming: IncomingMessage) => currentAddressOf()(incoming);
  const origins = derived(deps.config, createOriginPolicy);
  const authenticator = createAuthenticator(deps);
  const limits = new RequestLimits({ ...deps, onRefused: meter?.rateLimited });
  const dispatch = createDispatch({ ...deps, badResults: deps.badResults ?? 'throw' });
  const dashboard = createDashboardRoutes({ web: config.web, homeDir: deps.homeDir, log: deps.log });
  const eventStreams = createEventStreams({ ...deps, maxStreams: config.maxEventStreams });
  const mcp = createMcpRoute({
    load: () => loadMcp(deps),
    limits: config.mcp,
    bodyLimit: () => deps.config.current.httpBodyLimitBytes,
    limiter: limits.common,
    refusalOf: (tokenId, cost) => limits.refusalOf(tokenId, cost),
    clock,
  });
  const open = new OpenCalls(clock, deps.log);
  const { server, guard, isSecure, stopFollowing } = openServer({ ...deps, config });
  let draining = false;
  let onSettled: (() => void) | undefined;
  const common = { ...deps, dispatch, addressOf, origins, authenticator, limits, guard, draining: () => draining };
  const upgrades = createUpgrades({ ...common, onClose: settle });
  const handlers = createRouteHandlers(deps, { ...common, limiter: limits.common, dashboard, eventStreams, mcp });
  const router = createRouter({ web: config.web.enabled, hooksPath: deps.webhooks.path });
  const serve = createServeRequest({ ...common, isSecure, router, handlers, dashboard });

  const onRequest = createRequestListener({
    addressOf,
    open,
    guard,
    clock,
    meter,
    serve,
    onClose() {
      // A stream that started before the drain could not announce the end of its connection.
      if (draining) setImmediate(() => server.closeIdleConnections());
      settle();
    },
  });

  server.on('request', (incoming, outgoing) => onRequest(incoming, outgoing));
  server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => onRequest(incoming, outgoing, { expectsContinue: true }));
  // Other expectations may be ignored (RFC 9110 §10.1.1); node's own 417 has no body.
  server.on('checkExpectation', (incoming: IncomingMessage, outgoing: ServerResponse) => onRequest(incoming, outgoing));
  server.on('upgrade', upgrades.onUpgrade);
  server.on('clientError', (error: Error, socket: Duplex) => answerClientError(error, socket, open.on(socket)));

  tokens.onRevoked((tokenId) => {
    const current = tokens.current(tokenId);
    open.endToken(tokenId, current);
    if (current === undefined) mcp.endToken(tokenId);
  });

  function settle(): void {
    // Readers still see the end of what was running.
    if (draining && upgrades.size === 0 && open.size === eventStreams.size) eventStreams.end();
    if (open.size === 0 && upgrades.size === 0) onSettled?.();
  }

  function stopAccepting(): void {
    if (draining) return;
    draining = true;
    server.closeIdleConnections();
    open.closeAfterAnswers();
    mcp.drain();
    upgrades.drain();
  }

  return {
    listen: () => listen(server, config, isSecure),
    connections: () => ({ http: guard.size - upgrades.size, websocket: upgrades.size }),
    eventStreams: () => open.streams,
    serveOwner: (incoming, outgoing) =>
      onRequest(incoming, outgoing, { elsewhere: true, ...(incoming.headers.authorization === undefined ? { identity: owner } : {}) }),
    async drain(timeoutMs) {
      stopAccepting();
      if (open.size === 0 && upgrades.size === 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      onSettled = resolve;
      settle();
      await settledWithin(clock, timeoutMs, [promise]);
    },
    async [Symbol.asyncDispose]() {
      stopAccepting();
      server.close();
      await open[Symbol.asyncDispose]();
      stopFollowing();
      eventStreams.end();
      open.cut();
      await mcp[Symbol.asyncDispose]();
      upgrades.terminate();
      for (const socket of guard.all()) socket.destroy();
    },
  };
}

/** Nothing of MCP is loaded before its first request. */
async function loadMcp(deps: GatewayDeps): Promise<McpEndpoint> {
  const [{ createMcpEndpoint }, { createAgentsOffer }] = await Promise.all([import('./mcp/endpoint.ts'), import('./mcp/agents-offer.ts')]);
  const offer = deps.mcpOffer ?? createAgentsOffer({ ...deps, refuseOverload: () => refuseOverload(deps.overload) });
  return createMcpEndpoint({ ...deps, offer, limits: deps.config.current.mcp });
}

/** Answers bytes that are not HTTP, unless they would be taken for a part of a response. */
function answerClientError(error: Error, socket: Duplex, [call, ...others]: readonly HttpCall[]): void {
  const failure = protocolFailure(error);
  // With a response in progress, or still owed to an earlier request, the bytes would be taken for a part of it.
  const unanswered = call === undefined || (others.length === 0 && !call.incoming.complete && !call.outgoing.headersSent);
  if (failure !== undefined && unanswered) writeRaw(socket, failure.status, failure.error, call);
  else socket.destroy();
}
