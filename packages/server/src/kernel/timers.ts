import type { Clock } from './clock.ts';

/** Waits `ms`, or less when `signal` is aborted: check the signal afterwards. Never rejects. */
export async function sleep(clock: Pick<Clock, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(ms, resolve);
  const onAbort = () => resolve();
  signal?.addEventListener('abort', onAbort, { once: true });
  await promise;
  cancel();
  signal?.removeEventListener('abort', onAbort);
}

/** Waits until `work` is settled, at most `ms`. Never rejects; failures are left to the caller. */
export async function settledWithin(clock: Clock, ms: number, work: readonly PromiseLike<unknown>[]): Promise<void> {
  const waited = new AbortController();
  await Promise.race([Promise.allSettled(work), sleep(clock, ms, waited.signal)]);
  waited.abort();
}

export interface RepeatOptions {
  readonly clock: Clock;
  /** Milliseconds between the end of one run and the start of the next. */
  readonly everyMs: number;
  /** Milliseconds until the first run; `everyMs` when absent, 0 runs at once. */
  readonly firstMs?: number;
  /** A number that it returns is the milliseconds until the next run, instead of `everyMs`: do not return a count. */
  readonly run: () => Promise<number | void> | number | void;
  readonly onError: (error: unknown) => void;
}

/** Runs a job again and again, never twice at the same time. Disposal cancels the next run and waits for a running one. */
export function repeat({ clock, everyMs, firstMs = everyMs, run, onError }: RepeatOptions): AsyncDisposable {
  let isStopped = false;
  let running: Promise<void> = Promise.resolve();
  let cancel = () => {};

  function later(ms: number): void {
    cancel = clock.after(ms, () => {
      running = turn();
    });
  }

  async function turn(): Promise<void> {
    let nextMs = everyMs;
    try {
      const asked = await run();
      if (typeof asked === 'number') nextMs = asked;
    } catch (error) {
      onError(error);
    }
    if (!isStopped) later(nextMs);
  }

  if (firstMs === 0) running = turn();
  else later(firstMs);
  return {
    async [Symbol.asyncDispose]() {
      isStopped = true;
      cancel();
      await running;
    },
  };
}
