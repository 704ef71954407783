import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TokensApi } from '../../../features/access/tokens/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { Identity } from '../../../kernel/call-context.ts';
import type { WebSocketEndpoint } from '../../rpc/websocket.ts';
import { createSockets, type SocketsDeps } from '../../sockets.ts';
import { type ResponseSocketDeps, ResponseSocketSession } from './response-socket-session.ts';

/** Sockets on `/v1/responses`; `accept` gets requests that passed host, origin, limits, token and scope. */
export interface ResponseSockets extends Omit<WebSocketEndpoint, 'accept'> {
  accept(incoming: IncomingMessage, socket: Duplex, head: Buffer, identity: Identity, remoteAddress: string): void;
}

export function createResponseSockets(deps: Omit<ResponseSocketDeps, 'tokens'> & SocketsDeps & { readonly tokens: TokensApi }): ResponseSockets {
  const sockets = createSockets<ResponseSocketSession>(deps);

  deps.tokens.onRevoked((tokenId) => {
    const error = new AppError('unauthenticated', 'The token of this connection was revoked or has expired');
    for (const session of sockets.ofToken(tokenId)) session.end(4001, 'Unauthorized', error);
  });

  return {
    get size() {
      return sockets.size;
    },
    accept(incoming, socket, head, { tokenId }, remoteAddress) {
      sockets.upgrade(incoming, socket, head, (opened) =>
        sockets.add(opened, new ResponseSocketSession(opened, deps, { tokenId, remoteAddress }), remoteAddress),
      );
    },
    drain: sockets.drain,
    terminate: sockets.terminate,
  };
}
