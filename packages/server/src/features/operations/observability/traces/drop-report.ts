import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';

const warnEveryMs = 60_000;

/** Counts the spans that were dropped, and warns at most once a minute: a collector that is down is down for every batch. */
export class DropReport implements Disposable {
  readonly #deps: { readonly clock: Clock; readonly log: Log; readonly collector: string };
  #dropped = 0;
  #reason = '';
  #isEnding = false;
  #cancelWarning: (() => void) | undefined;

  constructor(deps: { readonly clock: Clock; readonly log: Log; readonly collector: string }) {
    this.#deps = deps;
  }

  add(spans: number, reason: string): void {
    this.#dropped += spans;
    this.#reason = reason;
    if (this.#cancelWarning === undefined) this.#warn();
  }

  /** Warns of what is not yet reported. */
  [Symbol.dispose](): void {
    this.#isEnding = true;
    this.#cancelWarning?.();
    this.#warn();
  }

  #warn(): void {
    const { clock, log, collector } = this.#deps;
    this.#cancelWarning = undefined;
    if (this.#dropped === 0) return;
    log.warn({ dropped: this.#dropped, reason: this.#reason, collector }, 'Dropped spans: the trace collector does not accept them');
    this.#dropped = 0;
    if (!this.#isEnding) this.#cancelWarning = clock.after(warnEveryMs, () => this.#warn());
  }
}
