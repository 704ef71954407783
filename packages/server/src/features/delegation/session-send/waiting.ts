import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';

/** How a message ended, for whoever waits for its answer. */
export interface SendEnd {
  readonly response: string | null;
  readonly errorKind: string | null;
  readonly announced: boolean;
  readonly turnsCompleted: number;
  readonly tokens: number;
  readonly costNano: number | null;
}

/** Who waits for the answer of a message, in this process: a message whose waiter is gone goes on without it. */
export class Waiting {
  readonly #clock: Clock;
  readonly #waiters = new Map<string, { readonly end: (end: SendEnd) => void; readonly from: string | undefined; readonly to: string }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(sendId: string): boolean {
    return this.#waiters.has(sendId);
  }

  /** Whether a turn in `to` waits, over any number of others, for one in `from`: then a wait the other way round would never end. */
  wouldHang(from: string, to: string): boolean {
    const seen = new Set([to]);
    for (const ref of seen) {
      if (ref === from) return true;
      for (const waiter of this.#waiters.values()) if (waiter.from === ref) seen.add(waiter.to);
    }
    return false;
  }

  /** Asked for before the message is stored, so that no end can be missed. */
  wait(sendId: string, who: { readonly from: string | undefined; readonly to: string; readonly ms: number; readonly signal: AbortSignal }) {
    const { promise, resolve, reject } = Promise.withResolvers<SendEnd>();
    const leave = () => {
      cancel();
      who.signal.removeEventListener('abort', stop);
      this.#waiters.delete(sendId);
    };
    const stop = () => {
      leave();
      reject(new AppError('cancelled', 'The caller is gone; the message goes on'));
    };
    const cancel = this.#clock.after(who.ms, () => {
      leave();
      reject(new AppError('timeout', `No answer from the other conversation within ${who.ms} ms; its turn goes on`));
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
    // Gone before it could wait: the answer is told as to one who does not wait.
    if (who.signal.aborted) stop();
    // Whoever is refused before it waits leaves, and nobody looks at the promise then.
    promise.catch(() => {});
    return { ended: promise, leave };
  }

  /** Messages to a conversation whose answers are awaited. */
  to(ref: string): readonly string[] {
    return [...this.#waiters].flatMap(([id, waiter]) => (waiter.to === ref ? [id] : []));
  }

  end(sendId: string, end: SendEnd): void {
    this.#waiters.get(sendId)?.end(end);
  }
}
