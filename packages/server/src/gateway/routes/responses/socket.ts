import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, WebSocketServer } from 'ws';
import type { TokensApi } from '../../../features/tokens/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { Identity } from '../../../kernel/call-context.ts';
import type { WebSocketDoor } from '../../rpc/websocket.ts';
import { type ResponseSocketDeps, ResponseSocketSession } from './socket-session.ts';

/** Sockets on `/v1/responses`; `accept` gets requests that passed host, origin, limits, token and scope. */
export interface ResponseSockets extends Omit<WebSocketDoor, 'accept'> {
  accept(incoming: IncomingMessage, socket: Duplex, head: Buffer, identity: Identity, remoteAddress: string): void;
}

export function createResponseSockets(
  deps: Omit<ResponseSocketDeps, 'tokens'> & {
    readonly tokens: TokensApi;
    readonly maxMessageBytes: number;
    /** Told when a socket closed. */
    readonly onClose: () => void;
    readonly pingMs?: number;
  },
): ResponseSockets {
  const { clock, pingMs = 30_000 } = deps;
  const sessions = new Set<ResponseSocketSession>();
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: deps.maxMessageBytes,
    // A browser drops the connection unless one of the protocols that it offered is chosen.
    handleProtocols: (offered) => [...offered].find((name) => !name.startsWith('bearer.')) ?? [...offered][0] ?? false,
  });
  let cancelPing: (() => void) | undefined;

  function ping(): void {
    for (const session of sessions) session.ping();
    cancelPing = sessions.size === 0 ? undefined : clock.after(pingMs, ping);
  }

  deps.tokens.onRevoked((tokenId) => {
    const error = new AppError('unauthenticated', 'The token of this connection was revoked or has expired');
    for (const session of sessions) if (session.tokenId === tokenId) session.end(4001, 'Unauthorized', error);
  });

  return {
    get size() {
      return sessions.size;
    },
    accept(incoming, socket, head, { tokenId }, remoteAddress) {
      server.handleUpgrade(incoming, socket, head, (opened) => {
        const session = new ResponseSocketSession(opened, deps, { tokenId, remoteAddress });
        sessions.add(session);
        cancelPing ??= clock.after(pingMs, ping);
        opened.on('message', (data: RawData, isBinary: boolean) => void session.receive(data, isBinary));
        opened.on('pong', () => session.alive());
        opened.on('error', (error) => deps.log.debug({ remoteAddress, err: error }, 'A socket failed'));
        opened.on('close', () => {
          sessions.delete(session);
          session.dispose();
          deps.onClose();
        });
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
