import { randomInt } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { Connection } from './connection.ts';
import { isRefusal, LostConnection, SilentServer, unreachable } from './postgres-errors.ts';

/** Longest wait for a connection before a call fails. */
export const maxWaitMs = 5_000;
const firstPauseMs = 50;
const maxPauseMs = 1_000;

export interface LinkOptions {
  readonly connect: () => Promise<Connection>;
  readonly clock: Clock;
  /** The server stopped answering on the connection. */
  readonly onSilence?: (silence: SilentServer) => void;
  /** The server could be reached, or could not; repeated while it cannot. */
  readonly onReach?: (error: unknown) => void;
}

interface Waiting {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: unknown) => void;
}

/** A place for one connection, which is opened when it is first needed and again whenever it was lost. */
export class Link {
  readonly #options: LinkOptions;
  readonly #waiting = new Set<Waiting>();
  #connection: Connection | undefined;
  #connecting = false;
  #closed = false;
  #awaySince: number | undefined;
  #lastError: unknown;
  #cancelPause = () => {};

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** When the connection was lost, or a first one could not be opened; undefined while there is one or none was needed. */
  get awaySince(): number | undefined {
    return this.#awaySince;
  }

  /** The live connection, or undefined while there is none. */
  get current(): Connection | undefined {
    return this.#connection?.isOpen === true ? this.#connection : undefined;
  }

  /** Waits for a connection until `untilMs` of the monotonic clock. @throws AppError `unavailable` */
  acquire(untilMs: number): Promise<Connection> {
    const live = this.current;
    if (live !== undefined) return Promise.resolve(live);
    const { clock } = this.#options;
    const leftMs = untilMs - clock.monotonic();
    if (this.#closed || leftMs <= 0) return Promise.reject(unreachable(this.#lastError));
    return new Promise((resolve, reject) => {
      const cancel = clock.after(leftMs, () => {
        this.#waiting.delete(entry);
        reject(unreachable(this.#lastError));
      });
      const entry: Waiting = {
        resolve: (connection) => (cancel(), resolve(connection)),
        reject: (error) => (cancel(), reject(error)),
      };
      this.#waiting.add(entry);
      if (!this.#connecting) void this.#connect(firstPauseMs);
    });
  }

  /** Drops the connection when it has heard nothing since a silence began, instead of letting its next caller find out. */
  suspect(silence: SilentServer): void {
    const { current } = this;
    if (current !== undefined && current.heardAt <= silence.sinceMs) current.drop(new LostConnection(silence.message));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPause();
    for (const { reject } of this.#waiting) reject(unreachable(this.#lastError));
    this.#waiting.clear();
    await this.#connection?.close();
  }

  async #connect(pauseMs: number): Promise<void> {
    this.#connecting = true;
    const { connect, clock, onReach } = this.#options;
    try {
      const connection = await connect();
      this.#connecting = false;
      if (this.#closed) return await connection.close();
      this.#connection = connection;
      this.#awaySince = undefined;
      this.#lastError = undefined;
      connection.onLost((error) => this.#lose(error));
      onReach?.(undefined);
      for (const { resolve } of this.#waiting) resolve(connection);
      this.#waiting.clear();
    } catch (error) {
      this.#lastError = error;
      this.#awaySince ??= clock.monotonic();
      onReach?.(error);
      // Nobody gains by waiting for another password; the next attempt still comes, because operators repair such things.
      if (isRefusal(error)) {
        for (const { reject } of this.#waiting) reject(unreachable(error));
        this.#waiting.clear();
      }
      if (this.#closed) return;
      // Many processes that lost the same server must not come back at the same moment.
      this.#cancelPause = clock.after(pauseMs / 2 + randomInt(pauseMs / 2), () => void this.#connect(Math.min(2 * pauseMs, maxPauseMs)));
    }
  }

  #lose(error: unknown): void {
    if (error instanceof SilentServer) this.#options.onSilence?.(error);
    this.#connection = undefined;
    this.#lastError = error;
    this.#awaySince = this.#options.clock.monotonic();
    if (!this.#closed && !this.#connecting) void this.#connect(firstPauseMs);
  }
}
