import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { allows } from '@gatehouse/contract';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { TokensApi } from '../../features/tokens/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Identity } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import { bearerOf } from '../auth.ts';
import { SocketSession } from './socket-session.ts';
import type { Dispatch } from './dispatch.ts';

const bearerProtocol = 'bearer.';

export interface WebSocketDeps {
  readonly dispatch: Dispatch;
  readonly tokens: TokensApi;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: { readonly maxMessageBytes: number; readonly maxInFlight: number; readonly maxMessages: number; readonly windowMs: number };
  /** Told when a socket closed. */
  readonly onClose: () => void;
  readonly pingMs?: number;
}

export interface WebSocketDoor {
  readonly size: number;
  /** Completes the handshake of a request that passed host, origin and rate limit; without an identity it is closed at once with 4001. */
  accept(incoming: IncomingMessage, socket: Duplex, head: Buffer, identity: Identity | undefined, remoteAddress: string): void;
  /** Takes no more calls; each socket closes with 1001 when its running calls are answered. */
  drain(): void;
  /** Cuts what is left. */
  terminate(): void;
}

/** The secret that a handshake carries: header, subprotocol `bearer.<secret>`, or `?token=` (decisions §5). */
export function socketSecret(incoming: IncomingMessage, search: string): string | undefined {
  const protocol = incoming.headers['sec-websocket-protocol']
    ?.split(',')
    .map((name) => name.trim())
    .find((name) => name.startsWith(bearerProtocol));
  return bearerOf(incoming) ?? protocol?.slice(bearerProtocol.length) ?? new URLSearchParams(search).get('token') ?? undefined;
}

/** JSON-RPC over WebSocket: one socket, one identity. */
export function createWebSocketDoor(deps: WebSocketDeps): WebSocketDoor {
  const { clock, pingMs = 30_000 } = deps;
  const sessions = new Set<SocketSession>();
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: deps.limits.maxMessageBytes,
    // A browser drops the connection unless one of the protocols that it offered is chosen.
    handleProtocols: (offered) => [...offered].find((name) => !name.startsWith(bearerProtocol)) ?? [...offered][0] ?? false,
  });
  let cancelPing: (() => void) | undefined;

  function ping(): void {
    for (const session of sessions) session.ping();
    cancelPing = sessions.size === 0 ? undefined : clock.after(pingMs, ping);
  }

  deps.tokens.onRevoked((tokenId) => {
    // A token that is merely rotated goes on with what it has begun; its next socket needs the new secret.
    const isGone = deps.tokens.current(tokenId) === undefined;
    for (const session of sessions) {
      if (session.tokenId !== tokenId) continue;
      if (isGone) session.abort(new AppError('unauthenticated', 'The token was revoked or has expired'));
      session.finish(4001, 'Unauthorized', isGone ? 2_000 : undefined);
    }
  });

  function open(socket: WebSocket, identity: Identity, remoteAddress: string): void {
    const session = new SocketSession(socket, deps, { tokenId: identity.tokenId, remoteAddress });
    sessions.add(session);
    cancelPing ??= clock.after(pingMs, ping);
    socket.on('message', (data: RawData, isBinary: boolean) => void session.receive(data, isBinary));
    socket.on('ping', (data: Buffer) => session.pong(data));
    socket.on('pong', () => session.alive());
    socket.on('error', (error) => deps.log.debug({ remoteAddress, err: error }, 'A socket failed'));
    socket.on('close', () => {
      sessions.delete(session);
      session.dispose();
      deps.onClose();
    });
  }

  return {
    get size() {
      return sessions.size;
    },
    accept(incoming, socket, head, identity, remoteAddress) {
      server.handleUpgrade(incoming, socket, head, (opened) => {
        if (identity !== undefined && allows(identity.scopes, 'socket')) {
          open(opened, identity, remoteAddress);
          return;
        }
        opened.on('error', () => {});
        opened.close(identity === undefined ? 4001 : 4003, identity === undefined ? 'Unauthorized' : 'Insufficient scope');
        const cancel = clock.after(2_000, () => opened.terminate());
        opened.once('close', cancel);
      });
    },
    drain() {
      for (const session of sessions) session.finish(1001, 'Going away');
    },
    terminate() {
      cancelPing?.();
      for (const session of sessions) session.terminate();
      server.close();
    },
  };
}
