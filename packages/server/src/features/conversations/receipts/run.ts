import type { TurnSink } from '../../../runtime/turn.ts';
import type { KeptOutcome, KeyedText, KeyedTurn } from './api.ts';

/** What a fragment costs beside its characters. */
const overhead = 64;

/** Texts of running turns that are kept in all, and of one of them, in characters with `overhead`. */
export const maxAllText = 64 * 1024 * 1024;
const maxRunText = 1024 * 1024;

/** Counts what all runs keep. */
export interface TextBudget {
  used: number;
}

/** A turn under a key while it runs: what it streamed of late, who reads it, and how it ended. */
export class KeyedRun {
  readonly digest: string;
  readonly sink: TurnSink;
  /** False when the key turned out to stand for another request. */
  readonly admitted: Promise<boolean>;
  readonly admit: (admitted: boolean) => void;
  readonly outcome: Promise<KeptOutcome>;
  readonly #settle: PromiseWithResolvers<KeptOutcome>;
  readonly #budget: TextBudget;
  /** Told with 0 when the last reader left, and with 1 when the first one came. */
  readonly #onReaders: (count: number) => void;
  #fragments: string[] = [];
  /** Number of the first fragment that is still there. */
  #firstId = 1;
  #size = 0;
  #readers = 0;
  #ended = false;
  #changed = Promise.withResolvers<void>();

  constructor(digest: string, budget: TextBudget, onReaders: (count: number) => void) {
    this.digest = digest;
    this.#budget = budget;
    this.#onReaders = onReaders;
    const admission = Promise.withResolvers<boolean>();
    this.admitted = admission.promise;
    this.admit = admission.resolve;
    this.#settle = Promise.withResolvers();
    this.outcome = this.#settle.promise;
    // Nobody may be there to hear of a failure.
    this.outcome.catch(() => {});
    this.sink = {
      text: (fragment) => this.#add(fragment),
      flush: () => {
        this.#wake();
        return true;
      },
      // Readers are served from the text that is kept; who is too slow for it finds a gap.
      drained: () => Promise.resolve(),
    };
  }

  /** Reads on after fragment `after` (0: from the beginning) until the turn ended or `signal` is aborted. */
  read(after: number, signal: AbortSignal): KeyedTurn {
    let at = after;
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      this.#readers -= 1;
      if (this.#readers === 0 && !this.#ended) this.#onReaders(0);
      this.#wake();
    };
    this.#readers += 1;
    if (this.#readers === 1) this.#onReaders(1);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    return {
      outcome: this.outcome,
      next: async () => {
        for (;;) {
          const text = left ? undefined : this.#textAfter(at);
          if (text !== undefined) {
            at = text.firstId + text.fragments.length - 1;
            return text;
          }
          if (left) return undefined;
          if (this.#ended) {
            const lastId = this.#lastId;
            if (at === lastId) return undefined;
            at = lastId;
            return { firstId: lastId + 1, fragments: [], gap: true };
          }
          await this.#changed.promise;
        }
      },
    };
  }

  end(outcome: KeptOutcome): void {
    this.#settle.resolve(outcome);
    this.#finish();
  }

  fail(error: unknown): void {
    this.#settle.reject(error);
    this.#finish();
  }

  #finish(): void {
    this.#ended = true;
    // Those who still read keep it alive by themselves.
    this.#budget.used -= this.#size;
    this.#wake();
  }

  #add(fragment: string): void {
    this.#fragments.push(fragment);
    this.#grow(fragment.length + overhead);
    while (this.#fragments.length > 1 && (this.#size > maxRunText || this.#budget.used > maxAllText)) {
      this.#grow(-((this.#fragments.shift() ?? '').length + overhead));
      this.#firstId += 1;
    }
  }

  #grow(by: number): void {
    this.#size += by;
    this.#budget.used += by;
  }

  get #lastId(): number {
    return this.#firstId + this.#fragments.length - 1;
  }

  #textAfter(id: number): KeyedText | undefined {
    if (id === this.#lastId || this.#fragments.length === 0) return undefined;
    // A number of an earlier run, or one that is no longer kept.
    const gap = id > this.#lastId || id + 1 < this.#firstId;
    const firstId = gap ? this.#firstId : id + 1;
    return { firstId, fragments: this.#fragments.slice(firstId - this.#firstId), gap };
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
