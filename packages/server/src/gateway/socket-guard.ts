import type { Socket } from 'node:net';
import type { Clock } from '../kernel/clock.ts';

interface Tracked {
  readonly sinceMs: number;
  /** Requests that are being answered on this socket. */
  busy: number;
}

export interface SocketGuard {
  readonly size: number;
  track(socket: Socket): void;
  /** A TLS socket that came out of the handshake on a tracked one, and replaces it from here on. */
  secured(socket: Socket): void;
  /** The socket showed a valid token: the cap no longer applies to it. */
  prove(socket: Socket): void;
  begin(socket: Socket): void;
  end(socket: Socket): void;
  all(): Iterable<Socket>;
}

/**
 * Limits what unauthenticated clients can hold: of sockets that showed no token within a second, at most `max` stay open; the
 * oldest idle ones are closed first. New ones are never refused because of it, so holding the cap does not lock anybody out.
 */
export function createSocketGuard({
  clock,
  tls,
  max = 64,
  graceMs = 1_000,
}: {
  readonly clock: Clock;
  /** Whether sockets come out of a handshake. */
  readonly tls: boolean;
  readonly max?: number;
  readonly graceMs?: number;
}): SocketGuard {
  const tracked = new Map<Socket, Tracked>();
  const strangers = new Set<Socket>();
  /** Node does not say which socket a TLS socket took over; both have the same peer. */
  const byPeer = new Map<string, Socket>();

  function track(socket: Socket): void {
    tracked.set(socket, { sinceMs: clock.monotonic(), busy: 0 });
    strangers.add(socket);
    const peer = tls ? peerOf(socket) : undefined;
    if (peer !== undefined) byPeer.set(peer, socket);
    // Not `once`, here and for everything that may be held for days: its wrapper costs more than the listener, and sockets close once.
    socket.on('close', () => {
      forget(socket);
      if (peer !== undefined && byPeer.get(peer) === socket) byPeer.delete(peer);
    });
    if (strangers.size > max) evict();
  }

  function forget(socket: Socket): void {
    tracked.delete(socket);
    strangers.delete(socket);
  }

  function evict(): void {
    const bound = clock.monotonic() - graceMs;
    let over = strangers.size - max;
    for (const socket of strangers) {
      if (over <= 0) return;
      const state = tracked.get(socket);
      if (state !== undefined && state.sinceMs > bound) return;
      if (state !== undefined && state.busy > 0) continue;
      over -= 1;
      strangers.delete(socket);
      socket.destroy();
    }
  }

  return {
    get size() {
      return tracked.size;
    },
    track,
    secured(socket) {
      const bare = byPeer.get(peerOf(socket));
      if (bare !== undefined) forget(bare);
      track(socket);
    },
    prove: (socket) => void strangers.delete(socket),
    begin(socket) {
      const state = tracked.get(socket);
      if (state !== undefined) state.busy += 1;
    },
    end(socket) {
      const state = tracked.get(socket);
      if (state !== undefined) state.busy -= 1;
    },
    all: () => tracked.keys(),
  };
}

function peerOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
