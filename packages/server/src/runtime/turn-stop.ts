import type { Clock } from '../kernel/clock.ts';

/** What a step waited for did not end although the turn was stopped. */
export class TurnStoppedError extends Error {
  override readonly name = 'TurnStoppedError';
}

/** Reason for aborting a turn whose calls were denied repeatedly. */
export class TurnDeniedError extends Error {
  override readonly name = 'TurnDeniedError';
}

type StopCause = 'aborted' | 'timeout' | 'denied';

/** Together with the commit that follows, less than the five seconds within which a stop takes effect. */
const graceMs = 4000;

/** Stops a turn from outside: its caller disconnects, its time runs out, or a guard ends it. */
export class TurnStop implements Disposable {
  readonly #clock: Clock;
  readonly #outer: AbortSignal;
  readonly #controller = new AbortController();
  readonly #endsAt: number;
  readonly #onAbort = (): void => this.#stop(this.#outer.reason instanceof TurnDeniedError ? 'denied' : 'aborted');
  #cause: StopCause | undefined;
  #cancelTimer: () => void;
  #isOver = false;
  /** Ends the present wait. */
  #giveUp: ((error: TurnStoppedError) => void) | undefined;

  constructor({ clock, signal, timeoutMs }: { readonly clock: Clock; readonly signal: AbortSignal; readonly timeoutMs: number }) {
    this.#clock = clock;
    this.#outer = signal;
    this.#endsAt = clock.monotonic() + timeoutMs;
    this.#cancelTimer = clock.after(timeoutMs, () => this.#stop('timeout'));
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Aborted in all cases. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get cause(): StopCause | undefined {
    return this.#cause;
  }

  leftMs(): number {
    return Math.max(0, this.#endsAt - this.#clock.monotonic());
  }

  /**
   * Settles with `work`; fails with `TurnStoppedError` when it still runs `graceMs` after the stop, so that a hanging
   * operation cannot hold a lane. One at a time.
   */
  bounded<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(resolve, reject);
      if (this.#isOver) reject(neverEnded());
      else this.#giveUp = reject;
    });
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
    this.#outer.removeEventListener('abort', this.#onAbort);
  }

  #stop(why: StopCause): void {
    if (this.#cause !== undefined) return;
    this.#cause = why;
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(graceMs, () => {
      this.#isOver = true;
      this.#giveUp?.(neverEnded());
    });
    this.#controller.abort();
  }
}

function neverEnded(): TurnStoppedError {
  return new TurnStoppedError('The turn was stopped, and what it waited for did not end');
}
