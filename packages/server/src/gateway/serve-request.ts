import type { Route } from '@gatehouse/contract';
import type { TransportMeter, TransportTracer } from '../features/operations/observability/api.ts';
import { AppError, toAppError } from '../kernel/app-error.ts';
import type { Log } from '../kernel/log.ts';
import type { ClientAddress } from './address.ts';
import { aboutTraced, authorize, notFound, startsWork } from './admission.ts';
import { type Authenticator, secretOf } from './auth.ts';
import type { GatewayConfig } from './config.ts';
import { allowOrigin, answerPreflight, isPreflight } from './cors.ts';
import type { RouteHandlers } from './handlers.ts';
import type { HttpCall } from './http-call.ts';
import { namesLoopback, type OriginPolicy } from './origin.ts';
import { owner } from './owner.ts';
import { sendError } from './reply.ts';
import type { RequestLimits } from './request-limits.ts';
import type { Router } from './router.ts';
import type { DashboardRoutes } from './routes/dashboard.ts';
import { refuseOverload } from './rpc/dispatch.ts';
import type { SocketGuard } from './socket-guard.ts';

export interface ServeRequestDeps {
  readonly config: Pick<GatewayConfig, 'corsOrigins'>;
  /** Whether the listener speaks HTTPS. */
  readonly isSecure: boolean;
  readonly origins: OriginPolicy;
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
