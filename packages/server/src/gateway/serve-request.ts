import type { Live } from '../kernel/config/live.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Route } from '@gatehouse/contract';
import type { TransportMeter, TransportTracer } from '../features/operations/observability/api.ts';
import { AppError, toAppError } from '../kernel/app-error.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { ClientAddress } from './address.ts';
import { type Authenticator, authorize, secretOf } from './auth.ts';
import type { GatewayConfig } from './config.ts';
import { allowOrigin, answerPreflight, isPreflight } from './cors.ts';
import type { RouteHandlers } from './handlers.ts';
import { HttpCall } from './http-call.ts';
import type { OpenCalls } from './open-calls.ts';
import { namesLoopback, type OriginPolicy } from './origin.ts';
import { owner } from './owner.ts';
import { sendError } from './reply.ts';
import type { RequestLimits } from './request-limits.ts';
import type { Router } from './router.ts';
import type { DashboardRoutes } from './routes/dashboard.ts';
import { refuseOverload } from './rpc/dispatch.ts';
import type { SocketGuard } from './socket-guard.ts';

export interface ServeRequestDeps {
  readonly config: Live<Pick<GatewayConfig, 'corsOrigins'>>;
  /** Whether the listener speaks HTTPS. */
  readonly isSecure: boolean;
  readonly origins: () => OriginPolicy;
  readonly router: Router;
  readonly handlers: RouteHandlers;
  readonly limits: RequestLimits;
  readonly authenticator: Authenticator;
  readonly guard: Pick<SocketGuard, 'prove'>;
  readonly dashboard: Pick<DashboardRoutes, 'openLink'>;
  readonly draining: () => boolean;
  readonly log: Log;
  readonly meter?: Pick<TransportMeter, 'failed'> | undefined;
  readonly tracer?: TransportTracer | undefined;
  readonly overload?: (() => string | undefined) | undefined;
}

/** Returns the function that checks every request in the same order, each step of which may end it, and runs its handler. Never rejects. */
export function createServeRequest(deps: ServeRequestDeps): (call: HttpCall, address: ClientAddress) => Promise<void> {
  const { config, origins, router, handlers, limits, authenticator, guard, draining, log, meter, tracer } = deps;

  async function serve(call: HttpCall, address: ClientAddress): Promise<void> {
    setCommonHeaders(call);
    const own = call.identity === owner;
    try {
      if (!own) origins().checkHost(call.incoming);
      const origin = own ? undefined : origins().checkOrigin(call.incoming);
      // Also when no page asks: a cached response must not be served to a page.
      if (config.current.corsOrigins.length > 0) call.vary('origin');
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
        limits.admit(call, address, isSigned);
      }
      if (!('route' in found)) {
        if (found.allow.length === 0 && deps.dashboard.openLink(call)) return;
        throw notFound(call, found.allow);
      }
      authorize(call, found.route);
      if (draining() && found.route.rateLimited) throw new AppError('unavailable', 'The server is shutting down');
      if (startsWork(found.route)) refuseOverload(deps.overload);
      call.params = found.params;
      const handler = handlers[found.name];
      if (tracer === undefined) await handler(call);
      else
        await tracer.request(aboutTraced(call, found.route), async () => {
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

  function setCommonHeaders(call: HttpCall): void {
    call.setHeader('x-request-id', call.requestId);
    call.setHeader('x-content-type-options', 'nosniff');
    // For a name that other servers on this machine share, the header would break their plain HTTP ports too.
    if (deps.isSecure && !namesLoopback(call.incoming)) call.setHeader('strict-transport-security', 'max-age=15552000');
    if (draining()) call.setHeader('connection', 'close');
  }

  function identify(call: HttpCall, address: ClientAddress, route: Route | undefined): void {
    const secret = secretOf(call.incoming, route);
    if (secret === undefined) return;
    call.identity = authenticator.authenticate(secret, address);
    if (call.identity !== undefined) guard.prove(call.incoming.socket);
  }

  function refuse(call: HttpCall, error: unknown): void {
    meter?.failed('http', toAppError(error).code);
    // A missing or duplicated Host header suggests request smuggling, so the connection is closed.
    if (error instanceof AppError && error.code === 'invalid_envelope') call.setHeader('connection', 'close');
    sendError(call, error, log);
  }

  return serve;
}

export interface RequestListenerDeps {
  readonly addressOf: (incoming: IncomingMessage) => ClientAddress;
  readonly open: OpenCalls;
  readonly guard: Pick<SocketGuard, 'begin' | 'end'>;
  readonly clock: Clock;
  readonly meter?: Pick<TransportMeter, 'request'> | undefined;
  readonly serve: (call: HttpCall, address: ClientAddress) => Promise<void>;
  /** Called when a call is closed and no longer open. */
  readonly onClose: () => void;
}

/** How a request came in. */
export interface RequestOrigin {
  readonly expectsContinue?: boolean;
  readonly identity?: Identity;
  /** Over another server than the listener. */
  readonly elsewhere?: boolean;
}

/** Returns the listener that serves each request of node as a call, counted until its response is closed. */
export function createRequestListener({ addressOf, open, guard, clock, meter, serve, onClose }: RequestListenerDeps) {
  return (incoming: IncomingMessage, outgoing: ServerResponse, how: RequestOrigin = {}): void => {
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
      meter?.request(call.route ?? 'none', call.family, methodLabel(incoming.method), status, clock.monotonic() - begun);
      guard.end(incoming.socket);
      onClose();
    });
    void serve(call, address);
  };
}

/**
 * Whether a route starts work that is refused under load. Reads continue, and so does JSON-RPC, which checks each call.
 * Webhooks are only stored, and some senders never try again.
 */
function startsWork(route: Route): boolean {
  return route.method === 'POST' && route.family !== 'rpc' && route.signed !== true;
}

/** Clients may send any word as a method; unknown ones share a label. */
function methodLabel(method: string | undefined): string {
  return method !== undefined && ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].includes(method) ? method : 'other';
}

/** Returns the attributes of a request's span. */
function aboutTraced(call: HttpCall, route: Route): Parameters<TransportTracer['request']>[0] {
  const parent = call.incoming.headers['traceparent'];
  return {
    route: route.path,
    method: route.method,
    traceId: call.traceId,
    traceparent: typeof parent === 'string' ? parent : undefined,
    status: () => call.outgoing.statusCode,
  };
}

/** Returns the error for a path without a route, or without one for this method. */
function notFound(call: HttpCall, allow: readonly string[]): AppError {
  if (allow.length === 0) return new AppError('not_found', 'No such path');
  call.setHeader('allow', allow.join(', '));
  return new AppError('method_not_allowed', `This path takes ${allow.join(', ')}`);
}
