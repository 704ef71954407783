import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';

/** How a message ended, for a caller awaiting its answer. */
export interface SendEnd {
  readonly response: string | null;
  readonly errorKind: string | null;
  readonly announced: boolean;
  readonly turnsCompleted: number;
  readonly tokens: number;
  readonly costNano: number | null;
}

/** Tracks callers in this process that await answers; a message whose waiter is gone continues without it. */
export class Waiting {
  readonly #clock: Clock;
  readonly #waiters = new Map<string, { readonly end: (end: SendEnd) => void; readonly from: string | undefined; readonly to: string }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(sendId: string): boolean {
    return this.#waiters.has(sendId);
  }

  /** Returns whether a turn in `to` waits, directly or indirectly, for one in `from`, so that a wait in the other direction would never end. */
  wouldDeadlock(from: string, to: string): boolean {
    const seen = new Set([to]);
    for (const ref of seen) {
      if (ref === from) return true;
      for (const waiter of this.#waiters.values()) if (waiter.from === ref) seen.add(waiter.to);
    }
    return false;
  }

  /** Registers a waiter. Call it before the message is stored, so that no end can be missed. */
  wait(sendId: string, who: { readonly from: string | undefined; readonly to: string; readonly ms: number; readonly signal: AbortSignal }) {
    const { promise, resolve, reject } = Promise.withResolvers<SendEnd>();
    const leave = () => {
      cancel();
      who.signal.removeEventListener('abort', stop);
      this.#waiters.delete(sendId);
    };
    const stop = () => {
      leave();
      reject(new AppError('cancelled', 'The caller left; the message is still processed'));
    };
    const cancel = this.#clock.after(who.ms, () => {
      leave();
      reject(new AppError('timeout', `No answer from the other conversation within ${who.ms} ms; its turn continues`));
    });
    this.#waiters.set(sendId, {
      from: who.from,
      to: who.to,
      end(end) {
        leave();
        resolve(end);
      },
    });
    who.signal.addEventListener('abort', stop, { once: true });
    // Aborted before it could wait: the answer is delivered as if nobody waited.
    if (who.signal.aborted) stop();
    // A caller that is refused before it waits leaves, and nobody handles the promise then.
    promise.catch(() => {});
    return { ended: promise, leave };
  }

  /** Returns the messages to a conversation whose answers are awaited. */
  to(ref: string): readonly string[] {
    return [...this.#waiters].flatMap(([id, waiter]) => (waiter.to === ref ? [id] : []));
  }

  end(sendId: string, end: SendEnd): void {
    this.#waiters.get(sendId)?.end(end);
  }
}
