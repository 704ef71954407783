import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Health, type Route, routes } from '@gatehouse/contract';
import type { Agent, AgentsApi } from '../features/agents/agents/api.ts';
import type { ReceiptsApi } from '../features/conversations/receipts/api.ts';
import type { SessionsApi } from '../features/conversations/sessions/api.ts';
import type { EventsApi } from '../features/operations/events/api.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import type { ResponsesApi } from '../features/conversations/responses/api.ts';
import type { TransportMeter, TransportTracer } from '../features/operations/observability/api.ts';
import type { TokensApi } from '../features/access/tokens/api.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { WebhooksApi } from '../features/unattended/webhooks/api.ts';
import { AppError, toAppError } from '../kernel/app-error.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import { connectionsWithin, descriptorLimit } from '../kernel/descriptors.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { Handlers } from '../kernel/handlers.ts';
import type { Log } from '../kernel/log.ts';
import { Roster } from '../kernel/roster.ts';
import type { ModelInfo } from '../llm/model.ts';
import type { Models } from '../llm/models.ts';
import { type ClientAddress, createAddressOf } from './address.ts';
import { aboutTraced, authorize, authorized, methodLabel, notFound, startsWork, setQuotaHeaders } from './admission.ts';
import { createAuthenticator, secretOf } from './auth.ts';
import type { GatewayConfig } from './config.ts';
import { allowOrigin, answerPreflight, isPreflight } from './cors.ts';
import { createRouteHandlers } from './handlers.ts';
import { callIds, HttpCall, isHandedOver, splitTarget } from './http-call.ts';
import { createRateLimiter } from './limits.ts';
import { createListener, protocolFailure, writeRaw } from './listener.ts';
import { createMcpRoute } from './mcp/route.ts';
import type { McpEndpoint } from './mcp/endpoint.ts';
import type { McpOffer } from './mcp/offer.ts';
import { createOriginPolicy, namesLoopback } from './origin.ts';
import { sendError } from './reply.ts';
import { createRouter } from './router.ts';
import { createDashboardRoutes } from './routes/dashboard.ts';
import { createEventStreams } from './routes/event-stream.ts';
import { createResponseSockets } from './routes/responses/socket.ts';
import type { EmbedTexts } from './routes/v1-embeddings.ts';
import { createDispatch, refuseOverload } from './rpc/dispatch.ts';
import { createWebSocketEndpoint, socketSecret } from './rpc/websocket.ts';
import { createSocketGuard } from './socket-guard.ts';
import { listenErrorOf } from './listen-error.ts';
import { followTls } from './tls-reload.ts';
import { readTls } from './tls.ts';

export interface GatewayDeps {
  readonly config: GatewayConfig;
  readonly handlers: Handlers;
  readonly tokens: TokensApi;
  readonly turns: TurnsApi;
  readonly media: MediaLibrary;
  readonly responses: ResponsesApi;
  readonly receipts: ReceiptsApi;
  readonly webhooks: WebhooksApi;
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

/** The caller of the owner-only socket: a user who can open it owns the installation. No token has this id, because it contains a colon. */
export const owner: Identity = { principalId: 'owner', tokenId: 'local:owner', scopes: ['*'] };

/** How long a client may leave a complete response unread before its socket is cut. */
const untakenMs = 30_000;
const sweepMs = 5_000;

/** Creates all endpoints of the daemon: HTTP routes, JSON-RPC over HTTP and WebSocket. */
export function createGateway(deps: GatewayDeps): Gateway {
  const { config, tokens, clock, log } = deps;
  const addressOf = createAddressOf(config.trustedProxies);
  const origins = createOriginPolicy(config);
  const authenticator = createAuthenticator(deps);
  const limiter = createRateLimiter({ ...config.rateLimit, clock, onRefused: deps.meter?.rateLimited });
  const hookLimiter = createRateLimiter({
    windowMs: deps.webhooks.rateLimit.windowMs ?? config.rateLimit.windowMs,
    maxRequests: deps.webhooks.rateLimit.maxRequests ?? 10 * config.rateLimit.maxRequests,
    clock,
    onRefused: deps.meter?.rateLimited,
  });
  const router = createRouter({ web: config.web.enabled, hooksPath: deps.webhooks.path });
  const dispatch = createDispatch({ ...deps, badResults: deps.badResults ?? 'throw' });
  const dashboard = createDashboardRoutes({ web: config.web, homeDir: deps.homeDir, log });
  const eventStreams = createEventStreams({ events: deps.events, clock, log, maxStreams: config.maxEventStreams });
  const mcp = createMcpRoute({ load: loadMcp, limits: config.mcp, bodyLimit: config.httpBodyLimitBytes, limiter, clock });
  const handlers = createRouteHandlers(deps, { dispatch, limiter, dashboard, eventStreams, mcp, draining: () => draining });
  const rpcSockets = createWebSocketEndpoint({
    ...deps,
    dispatch,
    onClose: settle,
    limits: { maxMessageBytes: config.wsMaxMessageBytes, maxInFlight: config.wsMaxInFlight, ...config.wsMessageRateLimit },
  });
  const responseSockets = createResponseSockets({
    ...deps,
    onClose: settle,
    maxMessageBytes: config.wsMaxMessageBytes,
    admit(identity) {
      const { allowed, resetMs } = limiter.take(`token:${identity.tokenId}`);
      if (!allowed) throw new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: resetMs });
      refuseOverload(deps.overload);
    },
  });
  const socketEndpoints = [rpcSockets, responseSockets];
  const openSockets = (): number => socketEndpoints.reduce((sum, { size }) => sum + size, 0);
  const tls = config.tls === undefined || !config.enabled ? undefined : { ...config.tls, files: readTls(config.tls, deps.homeDir, clock.now()) };
  const guard = createSocketGuard({ clock, tls: tls !== undefined });
  const limit = descriptorLimit();
  const maxConnections = connectionsWithin(config.maxConnections, limit);
  if (maxConnections < config.maxConnections)
    log.info({ maxConnections, descriptors: limit }, 'Fewer connections are taken than gateway.maxConnections: the limit of open files is low');
  const isSocketPath = (path: string): boolean => path === routes.ws.path || path === routes.responsesSocket.path;
  const server = createListener({ maxConnections, isSocketPath, tls });
  const following =
    tls === undefined || !('setSecureContext' in server)
      ? undefined
      : followTls({ ...deps, config: tls, baseDir: deps.homeDir, files: tls.files, apply: (files) => server.setSecureContext(files) });
  const open = new Roster<HttpCall>();
  let draining = false;
  let onSettled: (() => void) | undefined;
  let cancelSweep = clock.after(sweepMs, sweep);

  /** Nothing of MCP is loaded before its first request. */
  async function loadMcp(): Promise<McpEndpoint> {
    const [{ createMcpEndpoint }, { createAgentsOffer }] = await Promise.all([import('./mcp/endpoint.ts'), import('./mcp/agents-offer.ts')]);
    const offer = deps.mcpOffer ?? createAgentsOffer({ ...deps, refuseOverload: () => refuseOverload(deps.overload) });
    return createMcpEndpoint({ offer, limits: config.mcp, version: deps.version, clock, log, keepAliveMs: deps.keepAliveMs });
  }

  /** Checks every request in this order; each step may end it. */
  async function serve(call: HttpCall, address: ClientAddress): Promise<void> {
    call.setHeader('x-request-id', call.requestId);
    call.setHeader('x-content-type-options', 'nosniff');
    // For a name that other servers on this machine share, the header would break their plain HTTP ports too.
    if (tls !== undefined && !namesLoopback(call.incoming)) call.setHeader('strict-transport-security', 'max-age=15552000');
    if (draining) call.setHeader('connection', 'close');
    const own = call.identity === owner;
    try {
      if (!own) origins.checkHost(call.incoming);
      const origin = own ? undefined : origins.checkOrigin(call.incoming);
      // Also when no page asks: a cached response must not be served to a page.
      if (config.corsOrigins.length > 0) call.vary('origin');
      if (origin !== undefined) allowOrigin(call, origin);
      const found = router.match(call.incoming.method ?? '', call.path);
      if ('route' in found) {
        call.route = found.route.path;
        if (found.route.signed === true) call.challenge = 'Signature';
      }
      if (origin !== undefined && isPreflight(call)) return answerPreflight(call, 'route' in found ? [found.route.method] : found.allow);
      if (!own && (!('route' in found) || found.route.rateLimited)) {
        const route: Route | undefined = 'route' in found ? found.route : undefined;
        const isSigned = route?.signed === true;
        if (!isSigned) identify(call, address, route);
        admit(call, address, isSigned);
      }
      if (!('route' in found)) {
        if (found.allow.length === 0 && dashboard.openLink(call)) return;
        throw notFound(call, found.allow);
      }
      authorize(call, found.route);
      if (draining && found.route.rateLimited) throw new AppError('unavailable', 'The server is shutting down');
      if (startsWork(found.route)) refuseOverload(deps.overload);
      call.params = found.params;
      const handler = handlers[found.name];
      if (deps.tracer === undefined) await handler(call);
      else
        await deps.tracer.request(aboutTraced(call, found.route), async () => {
          try {
            await handler(call);
          } catch (error) {
            // Answered within the span, which records the status.
            refuse(call, error);
          }
        });
    } catch (error) {
      refuse(call, error);
    }
  }

  function refuse(call: HttpCall, error: unknown): void {
    deps.meter?.failed('http', toAppError(error).code);
    // A missing or duplicated Host header suggests request smuggling, so the connection is closed.
    if (error instanceof AppError && error.code === 'invalid_envelope') call.setHeader('connection', 'close');
    sendError(call, error, log);
  }

  function identify(call: HttpCall, address: ClientAddress, route: Route | undefined): void {
    const secret = secretOf(call.incoming, route);
    if (secret === undefined) return;
    call.identity = authenticator.authenticate(secret, address);
    if (call.identity !== undefined) guard.prove(call.incoming.socket);
  }

  /** The key is the token only when it is valid: random tokens create no keys. */
  function admit(call: HttpCall, address: ClientAddress, isSigned: boolean): void {
    const key = call.identity === undefined ? `address:${address.key}` : `token:${call.identity.tokenId}`;
    // Webhooks come in bursts, and some senders never repeat one: a signed one has a separate window (see `createHookRoutes`).
    if (isSigned) call.charge = () => void limiter.take(key);
    const common = isSigned ? limiter.peek(key) : limiter.take(key);
    const [{ policy }, quota] = isSigned && common.allowed ? [hookLimiter, hookLimiter.take(key)] : [limiter, common];
    setQuotaHeaders(call, quota, policy);
    if (quota.allowed) return;
    const refusal = new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: quota.resetMs });
    // The id to echo is in the body, which is read only for callers with a token.
    if (call.route !== routes.rpc.path || call.identity === undefined) throw refusal;
    call.refusal = refusal;
  }

  function onRequest(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    how: { readonly expectsContinue?: boolean; readonly identity?: Identity; readonly elsewhere?: boolean } = {},
  ): void {
    const address = addressOf(incoming);
    const call = new HttpCall(incoming, outgoing, address.text);
    call.expectsContinue = how.expectsContinue ?? false;
    call.identity = how.identity;
    call.mayHandOver = how.elsewhere !== true;
    const leave = open.join(call);
    const begun = clock.monotonic();
    guard.begin(incoming.socket);
    outgoing.on('close', () => {
      leave();
      const status = outgoing.headersSent ? outgoing.statusCode : 0;
      deps.meter?.request(call.route ?? 'none', call.family, methodLabel(incoming.method), status, clock.monotonic() - begun);
      guard.end(incoming.socket);
      // A stream that started before the drain could not announce the end of its connection.
      if (draining) setImmediate(() => server.closeIdleConnections());
      settle();
    });
    void serve(call, address);
  }

  /** Runs the same checks for a WebSocket handshake, answering on the bare socket. */
  function onUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (isHandedOver(incoming)) return watchEnd(socket);
    const { path, search } = splitTarget(incoming.url ?? '/');
    const { requestId } = callIds(incoming);
    try {
      origins.checkHost(incoming);
      origins.checkOrigin(incoming);
      if (draining) throw new AppError('unavailable', 'The server is shutting down');
      const address = addressOf(incoming);
      const isResponses = path === routes.responsesSocket.path;
      // Addresses end up in logs: only /ws accepts a token from there, for browsers, which cannot set headers.
      const secret = socketSecret(incoming, isResponses ? '' : search);
      const identity = secret === undefined ? undefined : authenticator.authenticate(secret, address);
      const quota = limiter.take(identity === undefined ? `address:${address.key}` : `token:${identity.tokenId}`);
      if (!quota.allowed) throw new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: quota.resetMs });
      if (identity !== undefined) guard.prove(incoming.socket);
      if (isResponses) responseSockets.accept(incoming, socket, head, authorized(identity, incoming, routes.responsesSocket), address.text);
      else rpcSockets.accept(incoming, socket, head, identity, address.text);
    } catch (failure) {
      const error = toAppError(failure);
      deps.meter?.failed('websocket', error.code);
      writeRaw(socket, error.entry.http, error, { path, requestId });
    }
  }

  /** Watches the socket of an event stream: ignores further input and treats its end as the reader's. */
  function watchEnd(socket: Duplex): void {
    socket.on('error', () => {});
    socket.on('end', () => socket.destroy());
    socket.resume();
  }

  function onClientError(error: Error, socket: Duplex): void {
    const failure = protocolFailure(error);
    const [call, ...others] = [...open.members()].filter(({ incoming }) => incoming.socket === socket);
    // With a response in progress, or still owed to an earlier request, the bytes would be taken for a part of it.
    const unanswered = call === undefined || (others.length === 0 && !call.incoming.complete && !call.outgoing.headersSent);
    if (failure !== undefined && unanswered) writeRaw(socket, failure.status, failure.error, call);
    else socket.destroy();
  }

  server.on('request', (incoming, outgoing) => onRequest(incoming, outgoing));
  server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => onRequest(incoming, outgoing, { expectsContinue: true }));
  // Other expectations may be ignored (RFC 9110 §10.1.1); node's own 417 has no body.
  server.on('checkExpectation', (incoming: IncomingMessage, outgoing: ServerResponse) => onRequest(incoming, outgoing));
  server.on('upgrade', onUpgrade);
  server.on('clientError', onClientError);
  server.on('connection', (socket: Socket) => guard.track(socket));
  server.on('secureConnection', (socket: Socket) => guard.secured(socket));

  tokens.onRevoked((tokenId) => {
    // A merely rotated token lets the work that it started continue.
    const isGone = tokens.current(tokenId) === undefined;
    const ended = new AppError('unauthenticated', 'The token was revoked or has expired');
    for (const call of open.members()) {
      if (call.identity?.tokenId !== tokenId) continue;
      // Before the first byte a failure can still be a status.
      if (isGone && !call.outgoing.headersSent) call.abort(ended);
      else if (call.streams && (isGone || !call.endsItself)) call.cutStream(ended);
    }
    if (isGone) mcp.endToken(tokenId);
  });

  /** Cuts idle connections: nothing in node closes one whose client does not read a complete response. */
  function sweep(): void {
    const now = clock.monotonic();
    for (const call of open.members()) {
      if (!call.outgoing.writableEnded) continue;
      call.endedAtMs ??= now;
      if (now - call.endedAtMs >= untakenMs) call.cut();
    }
    cancelSweep = clock.after(sweepMs, sweep);
  }

  function settle(): void {
    // Readers still see the end of what was running.
    if (draining && openSockets() === 0 && open.size === eventStreams.size) eventStreams.end();
    if (open.size === 0 && openSockets() === 0) onSettled?.();
  }

  function stopAccepting(): void {
    if (draining) return;
    draining = true;
    server.closeIdleConnections();
    for (const call of open.members()) if (!call.outgoing.headersSent) call.setHeader('connection', 'close');
    mcp.drain();
    for (const sockets of socketEndpoints) sockets.drain();
  }

  async function drain(timeoutMs: number): Promise<void> {
    stopAccepting();
    if (open.size === 0 && openSockets() === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = clock.after(timeoutMs, resolve);
      onSettled = () => {
        cancel();
        resolve();
      };
      settle();
    });
  }

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.once('error', (error) => reject(listenErrorOf(error, config.host, config.port)));
        server.listen(config.port, config.host, () => {
          const bound = server.address();
          const port = typeof bound === 'object' && bound !== null ? bound.port : config.port;
          resolve({ address: `${tls === undefined ? 'http' : 'https'}://${config.host.includes(':') ? `[${config.host}]` : config.host}:${port}` });
        });
      }),
    connections: () => ({ http: guard.size - openSockets(), websocket: openSockets() }),
    eventStreams: () => open.members().filter((call) => call.streams).length,
    serveOwner: (incoming, outgoing) =>
      onRequest(incoming, outgoing, { elsewhere: true, ...(incoming.headers.authorization === undefined ? { identity: owner } : {}) }),
    drain,
    async [Symbol.asyncDispose]() {
      stopAccepting();
      server.close();
      cancelSweep();
      following?.[Symbol.dispose]();
      eventStreams.end();
      for (const call of open.members()) call.cut();
      await mcp[Symbol.asyncDispose]();
      for (const sockets of socketEndpoints) sockets.terminate();
      for (const socket of guard.all()) socket.destroy();
    },
  };
}
