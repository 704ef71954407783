import { derived, type Live } from '../kernel/config/live.ts';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { routes } from '@gatehouse/contract';
import type { TokensApi } from '../features/access/tokens/api.ts';
import type { ResponsesApi } from '../features/conversations/responses/api.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { TransportMeter } from '../features/operations/observability/api.ts';
import { AppError, toAppError } from '../kernel/app-error.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { ClientAddress } from './address.ts';
import { authorized, type Authenticator } from './auth.ts';
import type { GatewayConfig } from './config.ts';
import { callIds, isHandedOver, splitTarget } from './http-call.ts';
import { writeRaw } from './listener.ts';
import type { OriginPolicy } from './origin.ts';
import type { RequestLimits } from './request-limits.ts';
import { createResponseSockets } from './routes/responses/response-sockets.ts';
import { type Dispatch, refuseOverload } from './rpc/dispatch.ts';
import { createWebSocketEndpoint, socketSecret } from './rpc/websocket.ts';
import type { SocketGuard } from './socket-guard.ts';

export interface UpgradesDeps {
  readonly config: Live<Pick<GatewayConfig, 'wsMaxMessageBytes' | 'wsMaxInFlight' | 'wsMessageRateLimit'>>;
  readonly tokens: TokensApi;
  readonly turns: TurnsApi;
  readonly responses: ResponsesApi;
  readonly dispatch: Dispatch;
  readonly addressOf: (incoming: IncomingMessage) => ClientAddress;
  readonly origins: () => OriginPolicy;
  readonly authenticator: Authenticator;
  readonly limits: RequestLimits;
  readonly guard: Pick<SocketGuard, 'prove'>;
  readonly draining: () => boolean;
  /** Called when a socket has closed. */
  readonly onClose: () => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: Pick<TransportMeter, 'failed'> | undefined;
  readonly overload?: (() => string | undefined) | undefined;
}

/** Returns whether a path speaks WebSocket. */
export function isSocketPath(path: string): boolean {
  return path === routes.ws.path || path === routes.responsesSocket.path;
}

/** The WebSockets of all routes, from the handshake on. */
export function createUpgrades(deps: UpgradesDeps) {
  const { config, origins, authenticator, meter } = deps;
  const { wsMaxMessageBytes: maxMessageBytes } = config.current;
  const limits = derived(config, ({ wsMaxInFlight, wsMessageRateLimit }) => ({ maxInFlight: wsMaxInFlight, ...wsMessageRateLimit }));
  const rpc = createWebSocketEndpoint({ ...deps, maxMessageBytes, limits, refusalOf: (tokenId) => deps.limits.refusalOf(tokenId) });
  const responses = createResponseSockets({
    ...deps,
    maxMessageBytes,
    admit(identity) {
      deps.limits.admitMessage(identity);
      refuseOverload(deps.overload);
    },
  });

  /** Makes the same checks for a handshake as for a request, then passes the socket on. */
  function accept(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { path, search } = splitTarget(incoming.url ?? '/');
    origins().checkHost(incoming);
    origins().checkOrigin(incoming);
    if (deps.draining()) throw new AppError('unavailable', 'The server is shutting down');
    const address = deps.addressOf(incoming);
    const isResponses = path === routes.responsesSocket.path;
    // Addresses end up in logs: only /ws accepts a token from there, for browsers, which cannot set headers.
    const secret = socketSecret(incoming, isResponses ? '' : search);
    const identity = secret === undefined ? undefined : authenticator.authenticate(secret, address);
    deps.limits.admitSocket(identity, address);
    if (identity !== undefined) deps.guard.prove(incoming.socket);
    if (isResponses) responses.accept(incoming, socket, head, authorized(identity, incoming, routes.responsesSocket), address.text);
    else rpc.accept(incoming, socket, head, identity, address.text);
  }

  return {
    /** Takes over the socket of a request that asks for it; a refusal is answered on the bare socket. */
    onUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
      if (isHandedOver(incoming)) return watchEnd(socket);
      try {
        accept(incoming, socket, head);
      } catch (failure) {
        const error = toAppError(failure);
        meter?.failed('websocket', error.code);
        writeRaw(socket, error.entry.http, error, { path: splitTarget(incoming.url ?? '/').path, requestId: callIds(incoming).requestId });
      }
    },
    /** Number of open sockets. */
    get size(): number {
      return rpc.size + responses.size;
    },
    drain(): void {
      rpc.drain();
      responses.drain();
    },
    terminate(): void {
      rpc.terminate();
      responses.terminate();
    },
  };
}

/** Watches the socket of an event stream: ignores further input and treats its end as the reader's. */
function watchEnd(socket: Duplex): void {
  socket.on('error', () => {});
  socket.on('end', () => socket.destroy());
  socket.resume();
}
