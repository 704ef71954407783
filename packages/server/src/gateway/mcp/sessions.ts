import { randomUUID } from 'node:crypto';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';

const sweepMs = 10_000;

/** Resources of a session; closing it ends its streams and aborts its calls. */
export interface Connection {
  close(): Promise<void>;
}

interface Session<C extends Connection> {
  readonly tokenId: string;
  readonly connection: C;
  /** Number of open requests and streams. */
  busy: number;
  usedAtMs: number;
}

export interface SessionLimits {
  readonly maxSessions: number;
  readonly maxSessionsPerToken: number;
  /** A session that is unused for this long ends. */
  readonly sessionIdleMs: number;
}

/** The sessions of the MCP endpoint (streamable HTTP): each belongs to the token that started it. */
export interface Sessions<C extends Connection> {
  /** Ends the token's longest unused session if needed. Fails with `rate_limited` when all its sessions are in use, `unavailable` when all are. */
  begin(tokenId: string, open: (id: string) => C): { readonly id: string; readonly connection: C };
  /** Returns undefined for a session that is unknown, over, or of another token. Call the returned `leave` when the request is answered. */
  use(id: string, tokenId: string): { readonly connection: C; readonly leave: () => void } | undefined;
  end(id: string): void;
  endAllOf(tokenId: string): void;
  connections(): readonly C[];
  readonly size: number;
  close(): Promise<void>;
}

export function createSessions<C extends Connection>({ clock, limits }: { readonly clock: Clock; readonly limits: SessionLimits }): Sessions<C> {
  /** Ordered by last use, oldest first. */
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

  /** Runs while there are any. */
  function watch(): void {
    if (sessions.size > 0) cancelSweep ??= clock.after(Math.min(sweepMs, limits.sessionIdleMs), sweep);
  }

  function ensureCapacity(tokenId: string): void {
    const own = [...sessions].filter(([, session]) => session.tokenId === tokenId);
    const full = own.length >= limits.maxSessionsPerToken;
    if (!full && sessions.size < limits.maxSessions) return;
    // Clients that crash never end their sessions; those of other tokens must not be ended.
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
      ensureCapacity(tokenId);
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
