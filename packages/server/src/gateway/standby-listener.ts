import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Health } from '@gatehouse/contract';
import { AppError } from '../kernel/app-error.ts';
import { HttpCall, splitTarget } from './http-call.ts';
import { protocolFailure, writeRaw } from './listener.ts';
import { listen, openServer, type OpenServerDeps } from './open-server.ts';
import { sendError, sendJson } from './reply.ts';

export interface StandbyListenerDeps extends OpenServerDeps {
  readonly version: string;
  /** What this daemon waits for, or why it could not take over; shown to anybody, so without addresses. */
  readonly lease: () => Health['checks'][string];
}

export interface StandbyListener extends AsyncDisposable {
  /** Null when `gateway.enabled` is false. */
  readonly address: string | null;
  /** Answers a request that came in elsewhere. */
  serve(incoming: IncomingMessage, outgoing: ServerResponse): void;
}

const healthPaths = new Set(['/health', '/api/health']);
const retryAfterMs = 1_000;
const elsewhere = () => new AppError('unavailable', 'This node is a standby: the active one answers', { retryAfterMs });

/** Opens the listener of a standby: it reports its health, and everything else is at the active one. */
export async function openStandbyListener(deps: StandbyListenerDeps): Promise<StandbyListener> {
  const { config, clock, log, version, lease } = deps;
  const startedAt = clock.monotonic();

  function serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    outgoing.on('error', () => {});
    const call = new HttpCall(incoming, outgoing, incoming.socket.remoteAddress ?? '');
    // Its next request should find the active node.
    call.setHeader('connection', 'close');
    call.setHeader('cache-control', 'no-store');
    const isProbe = healthPaths.has(call.path) && (incoming.method === 'GET' || incoming.method === 'HEAD');
    if (!isProbe) return sendError(call, elsewhere(), log);
    const health: Health = {
      status: 'standby',
      role: 'standby',
      version,
      uptimeMs: Math.round(clock.monotonic() - startedAt),
      checks: { lease: lease() },
    };
    const asksReady = new URLSearchParams(call.search).has('ready');
    if (asksReady) call.setHeader('retry-after', String(retryAfterMs / 1000));
    sendJson(call, asksReady ? 503 : 200, health);
  }

  const { server, guard, isSecure, stopFollowing } = openServer(deps);
  server.on('request', serve);
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex) =>
    writeRaw(socket, 503, elsewhere(), { path: splitTarget(incoming.url ?? '/').path }),
  );
  server.on('clientError', (error: Error, socket: Duplex) => {
    const failure = protocolFailure(error);
    if (failure === undefined) socket.destroy();
    else writeRaw(socket, failure.status, failure.error);
  });
  const address = config.enabled ? (await listen(server, config, isSecure)).address : null;
  return {
    address,
    serve,
    async [Symbol.asyncDispose]() {
      const closed = address === null ? undefined : new Promise((resolve) => server.close(resolve));
      stopFollowing();
      for (const socket of guard.all()) socket.destroy();
      await closed;
    },
  };
}
