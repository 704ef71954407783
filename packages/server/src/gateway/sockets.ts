import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';

/** A route's handler of one open socket. */
export interface SocketSession {
  readonly tokenId: string;
  receive(data: RawData, isBinary: boolean): Promise<void>;
  /** Sends a ping, or cuts a peer that left the last one unanswered. */
  ping(): void;
  /** The peer sent a ping or a pong. */
  alive(): void;
  /** Lets running work finish, accepts nothing new, then closes; after `withinMs` in any case. */
  finish(code: number, reason: string, withinMs?: number): void;
  terminate(): void;
  dispose(): void;
}

export interface SocketsDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** A longer frame closes its socket with 1009. */
  readonly maxMessageBytes: number;
  /** Called when a socket has closed. */
  readonly onClose: () => void;
  readonly pingMs?: number;
}

/** Prefix of the subprotocol that carries a token. */
export const bearerProtocol = 'bearer.';
/** Bytes of unread replies above which a ping is left unanswered: pings must not fill the buffer. */
const softBytes = 256 * 1024;

/** The open WebSockets of one route, from handshake to close. */
export function createSockets<Session extends SocketSession>(deps: SocketsDeps) {
  const { clock, pingMs = 30_000 } = deps;
  const sessions = new Set<Session>();
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: deps.maxMessageBytes,
    // A browser drops the connection unless one of the protocols that it offered is selected.
    handleProtocols: (offered) => [...offered].find((name) => !name.startsWith(bearerProtocol)) ?? [...offered][0] ?? false,
  });
  let cancelPing: (() => void) | undefined;

  function ping(): void {
    for (const session of sessions) session.ping();
    cancelPing = sessions.size === 0 ? undefined : clock.after(pingMs, ping);
  }

  return {
    get size() {
      return sessions.size;
    },
    ofToken: (tokenId: string): Session[] => [...sessions].filter((session) => session.tokenId === tokenId),
    /** Completes the handshake. */
    upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, opened: (socket: WebSocket) => void): void {
      server.handleUpgrade(incoming, socket, head, opened);
    },
    add(socket: WebSocket, session: Session, remoteAddress: string): void {
      sessions.add(session);
      cancelPing ??= clock.after(pingMs, ping);
      socket.on('message', (data: RawData, isBinary: boolean) => void session.receive(data, isBinary));
      socket.on('ping', (data: Buffer) => {
        session.alive();
        if (socket.bufferedAmount < softBytes && socket.readyState === socket.OPEN) socket.pong(data);
      });
      socket.on('pong', () => session.alive());
      socket.on('error', (error) => deps.log.debug({ remoteAddress, err: error }, 'A socket failed'));
      socket.on('close', () => {
        sessions.delete(session);
        session.dispose();
        deps.onClose();
      });
    },
    drain(): void {
      for (const session of sessions) session.finish(1001, 'Going away');
    },
    terminate(): void {
      cancelPing?.();
      for (const session of sessions) session.terminate();
      server.close();
    },
  };
}
