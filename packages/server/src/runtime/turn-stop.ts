import type { Clock } from '../kernel/clock.ts';

/** What a step waited for did not end although the turn was stopped. */
export class TurnStoppedError extends Error {
  override readonly name = 'TurnStoppedError';
}

/** The end that a turn can be put to from outside: its caller leaves, or its wall clock runs out. */
export interface TurnStop extends Disposable {
  /** Aborted in both cases. */
  readonly signal: AbortSignal;
  readonly cause: 'aborted' | 'timeout' | undefined;
  leftMs(): number;
  /** Settles with `work`; fails with `TurnStoppedError` when it still runs `graceMs` after the stop, so that nothing that hangs can hold a lane. */
  bounded<T>(work: Promise<T>): Promise<T>;
}

const graceMs = 5000;

export function startTurnStop(options: { readonly clock: Clock; readonly signal: AbortSignal; readonly timeoutMs: number }): TurnStop {
  const { clock, signal, timeoutMs } = options;
  const controller = new AbortController();
  const startedAt = clock.monotonic();
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => {});
  let cause: TurnStop['cause'];
  let cancelTimer = clock.after(timeoutMs, () => stop('timeout'));

  function stop(why: 'aborted' | 'timeout'): void {
    if (cause !== undefined) return;
    cause = why;
    cancelTimer();
    cancelTimer = clock.after(graceMs, () => over.reject(new TurnStoppedError('The turn was stopped, and what it waited for did not end')));
    controller.abort();
  }
  const onAbort = () => stop('aborted');
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });

  return {
    signal: controller.signal,
    get cause() {
      return cause;
    },
    leftMs: () => Math.max(0, timeoutMs - (clock.monotonic() - startedAt)),
    bounded: (work) => Promise.race([work, over.promise]),
    [Symbol.dispose]() {
      cancelTimer();
      signal.removeEventListener('abort', onAbort);
    },
  };
}
