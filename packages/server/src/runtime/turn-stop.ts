import type { Clock } from '../kernel/clock.ts';

/** What a step waited for did not end although the turn was stopped. */
export class TurnStoppedError extends Error {
  override readonly name = 'TurnStoppedError';
}

const graceMs = 5000;

/** The end that a turn can be put to from outside: its caller leaves, or its wall clock runs out. */
export class TurnStop implements Disposable {
  readonly #clock: Clock;
  readonly #outer: AbortSignal;
  readonly #controller = new AbortController();
  readonly #endsAt: number;
  readonly #onAbort = (): void => this.#stop('aborted');
  #cause: 'aborted' | 'timeout' | undefined;
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

  /** Aborted in both cases. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get cause(): 'aborted' | 'timeout' | undefined {
    return this.#cause;
  }

  leftMs(): number {
    return Math.max(0, this.#endsAt - this.#clock.monotonic());
  }

  /**
   * Settles with `work`; fails with `TurnStoppedError` when it still runs `graceMs` after the stop, so that nothing that
   * hangs can hold a lane. One at a time.
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

  #stop(why: 'aborted' | 'timeout'): void {
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
