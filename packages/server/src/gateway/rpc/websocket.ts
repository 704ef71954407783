import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { allows } from '@gatehouse/contract';
import type { TokensApi } from '../../features/access/tokens/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Identity } from '../../kernel/call-context.ts';
import { bearerOf } from '../auth.ts';
import { bearerProtocol, createSockets, type SocketsDeps } from '../sockets.ts';
import { SocketSession, type SocketSessionDeps } from './socket-session.ts';
import type { Dispatch } from './dispatch.ts';

export interface WebSocketDeps extends SocketsDeps {
  readonly dispatch: Dispatch;
  readonly tokens: TokensApi;
  readonly refusalOf?: SocketSessionDeps['refusalOf'];
  readonly limits: () => { readonly maxInFlight: number; readonly maxMessages: number; readonly windowMs: number };
}

export interface WebSocketEndpoint {
  readonly size: number;
  /** Completes the handshake of a request that passed host, origin and rate limit; without an identity it is closed at once with 4001. */
  accept(incoming: IncomingMessage, socket: Duplex, head: Buffer, identity: Identity | undefined, remoteAddress: string): void;
  /** Refuses new calls; each socket closes with 1001 when its running calls are answered. */
  drain(): void;
  /** Cuts the remaining sockets. */
  terminate(): void;
}

/** Returns the secret that a handshake carries: header, subprotocol `bearer.<secret>`, or `?token=` (decisions §5). */
export function socketSecret(incoming: IncomingMessage, search: string): string | undefined {
  const protocol = incoming.headers['sec-websocket-protocol']
    ?.split(',')
    .map((name) => name.trim())
    .find((name) => name.startsWith(bearerProtocol));
  return bearerOf(incoming) ?? protocol?.slice(bearerProtocol.length) ?? new URLSearchParams(search).get('token') ?? undefined;
}

/** JSON-RPC over WebSocket: one socket, one identity. */
export function createWebSocketEndpoint(deps: WebSocketDeps): WebSocketEndpoint {
  const { clock } = deps;
  const sockets = createSockets<SocketSession>(deps);

  deps.tokens.onRevoked((tokenId) => {
    // A merely rotated token lets running calls continue; its next socket needs the new secret.
    const isGone = deps.tokens.current(tokenId) === undefined;
    for (const session of sockets.ofToken(tokenId)) {
      if (isGone) session.abort(new AppError('unauthenticated', 'The token was revoked or has expired'));
      session.finish(4001, 'Unauthorized', isGone ? 2_000 : undefined);
    }
  });

  return {
    get size() {
      return sockets.size;
    },
    accept(incoming, socket, head, identity, remoteAddress) {
      sockets.upgrade(incoming, socket, head, (opened) => {
        if (identity !== undefined && allows(identity.scopes, 'socket')) {
          sockets.add(opened, new SocketSession(opened, deps, { tokenId: identity.tokenId, remoteAddress }), remoteAddress);
          return;
        }
        opened.on('error', () => {});
        opened.close(identity === undefined ? 4001 : 4003, identity === undefined ? 'Unauthorized' : 'Insufficient scope');
        const cancel = clock.after(2_000, () => opened.terminate());
        opened.once('close', cancel);
      });
    },
    drain: sockets.drain,
    terminate: sockets.terminate,
  };
}
