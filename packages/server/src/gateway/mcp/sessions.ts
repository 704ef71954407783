import { randomUUID } from 'node:crypto';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';

const sweepMs = 10_000;

/** What a session holds; closing it ends its streams and aborts its calls. */
export interface Connection {
  close(): Promise<void>;
}

interface Session<C extends Connection> {
  readonly tokenId: string;
  readonly connection: C;
  /** Requests and streams that are open. */
  busy: number;
  usedAtMs: number;
}

export interface SessionLimits {
  readonly maxSessions: number;
  readonly maxSessionsPerToken: number;
  /** A session that was not used for so long ends. */
  readonly sessionIdleMs: number;
}

/** The sessions of the MCP endpoint (json-rpc over streamable HTTP): each belongs to the token that began it. */
export interface Sessions<C extends Connection> {
  /** Fails with `rate_limited` when the token has too many that are in use, with `unavailable` when all have; makes room by ending the longest unused one of the same token. */
  begin(tokenId: string, open: (id: string) => C): { readonly id: string; readonly connection: C };
  /** Undefined for a session that is unknown, over, or of another token. The returned `leave` must be called when the request is answered. */
  use(id: string, tokenId: string): { readonly connection: C; readonly leave: () => void } | undefined;
  end(id: string): void;
  endAllOf(tokenId: string): void;
  connections(): readonly C[];
  readonly size: number;
  close(): Promise<void>;
}

export function createSessions<C extends Connection>({ clock, limits }: { readonly clock: Clock; readonly limits: SessionLimits }): Sessions<C> {
  /** The longest unused first. */
  const sessions = new Map<string, Session<C>>();
  let cancelSweep: (() => void) | undefined;

  function end(id: string): void {
    const session = sessions.get(id);
    if (session === undefined) return;
    sessions.delete(id);
    void session.connection.close();
  }

  function sweep(): void {
    cancelSweep = undefined;
    const now = clock.monotonic();
    for (const [id, { busy, usedAtMs }] of sessions) if (busy === 0 && now - usedAtMs >= limits.sessionIdleMs) end(id);
    watch();
  }

  /** Goes on while there are any. */
  function watch(): void {
    if (sessions.size > 0) cancelSweep ??= clock.after(Math.min(sweepMs, limits.sessionIdleMs), sweep);
  }

  function makeRoom(tokenId: string): void {
    const own = [...sessions].filter(([, session]) => session.tokenId === tokenId);
    const full = own.length >= limits.maxSessionsPerToken;
    if (!full && sessions.size < limits.maxSessions) return;
    // Clients that crash never end theirs; those of other tokens are not ours to take.
    const unused = own.find(([, { busy }]) => busy === 0);
    if (unused !== undefined) return end(unused[0]);
    const retryAfterMs = sweepMs;
    if (full)
      throw new AppError('rate_limited', `This token has ${own.length} MCP sessions in use, as many as gateway.mcp.maxSessionsPerToken allows`, {
        retryAfterMs,
      });
    throw new AppError('unavailable', `${sessions.size} MCP sessions are open, as many as gateway.mcp.maxSessions allows`, { retryAfterMs });
  }

  return {
    begin(tokenId, open) {
      makeRoom(tokenId);
      const id = randomUUID();
      const connection = open(id);
      sessions.set(id, { tokenId, connection, busy: 0, usedAtMs: clock.monotonic() });
      watch();
      return { id, connection };
    },
    use(id, tokenId) {
      const session = sessions.get(id);
      if (session === undefined || session.tokenId !== tokenId) return undefined;
      session.busy += 1;
      sessions.delete(id);
      sessions.set(id, session);
      return {
        connection: session.connection,
        leave() {
          session.busy -= 1;
          session.usedAtMs = clock.monotonic();
        },
      };
    },
    end,
    endAllOf(tokenId) {
      for (const [id, session] of sessions) if (session.tokenId === tokenId) end(id);
    },
    connections: () => [...sessions.values()].map(({ connection }) => connection),
    get size() {
      return sessions.size;
    },
    async close() {
      cancelSweep?.();
      const open = [...sessions.values()];
      sessions.clear();
      await Promise.all(open.map(({ connection }) => connection.close()));
    },
  };
}
