import type { JsonFragment } from '../../../kernel/json-fragment.ts';
import type { TurnSink } from '../../../runtime/turn.ts';
import type { KeptOutcome, KeyedText, KeyedTurn } from './api.ts';

/** Cost of a fragment in addition to its characters. */
const overhead = 64;

/** Maximum buffered text of all running turns, and of one of them, in characters with `overhead`. */
export const maxAllText = 64 * 1024 * 1024;
const maxRunText = 1024 * 1024;

/** Total size of the text buffered by all runs. */
export interface TextBudget {
  used: number;
}

/** A running turn under a key: its recent output, its readers and its outcome. */
export class KeyedRun {
  readonly digest: string;
  readonly sink: TurnSink;
  /** Resolves to false when the key belongs to another request. */
  readonly admitted: Promise<boolean>;
  readonly admit: (admitted: boolean) => void;
  readonly outcome: Promise<KeptOutcome>;
  readonly #settle: PromiseWithResolvers<KeptOutcome>;
  readonly #budget: TextBudget;
  /** Called with 0 when the last reader has left, and with 1 when the first one arrives. */
  readonly #onReaders: (count: number) => void;
  #fragments: JsonFragment[] = [];
  /** Number of the first buffered fragment. */
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
    // Prevents an unhandled rejection when there are no readers.
    this.outcome.catch(() => {});
    this.sink = {
      text: (fragment) => this.#add(fragment),
      flush: () => {
        this.#wake();
        return true;
      },
      // Readers are served from the buffered text; slow ones get a gap.
      drained: () => Promise.resolve(),
    };
  }

  /** Reads from after fragment `after` (0: from the beginning) until the turn has ended or `signal` aborts. */
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
    // The remaining readers keep the text in memory.
    this.#budget.used -= this.#size;
    this.#wake();
  }

  #add(fragment: JsonFragment): void {
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
    // The number is from an earlier run, or no longer buffered.
    const gap = id > this.#lastId || id + 1 < this.#firstId;
    const firstId = gap ? this.#firstId : id + 1;
    return { firstId, fragments: this.#fragments.slice(firstId - this.#firstId), gap };
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
