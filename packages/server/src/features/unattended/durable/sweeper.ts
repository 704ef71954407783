import type { Clock } from '../../../kernel/clock.ts';

interface Sweeping {
  readonly kind: 'sweeping';
  done: Promise<void>;
  isWokenAgain: boolean;
}

type Phase = { readonly kind: 'new' | 'stopped' } | { readonly kind: 'sleeping'; readonly cancel: () => void } | Sweeping;

/** Runs sweeps one after the other: when woken, and after the delay that the last one returned. */
export class Sweeper {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #sweep: () => Promise<number>;
  #phase: Phase = { kind: 'new' };

  /** `sweep` claims what is due and returns the delay until the next sweep; it must not reject. */
  constructor(clock: Pick<Clock, 'after'>, sweep: () => Promise<number>) {
    this.#clock = clock;
    this.#sweep = sweep;
  }

  /** Whether it was started and not stopped. */
  get isRunning(): boolean {
    return this.#phase.kind === 'sleeping' || this.#phase.kind === 'sweeping';
  }

  start(): void {
    if (this.#phase.kind === 'new') this.#begin();
  }

  /** Sweeps now, or once more after the current sweep. */
  wake(): void {
    const phase = this.#phase;
    if (phase.kind === 'sweeping') phase.isWokenAgain = true;
    if (phase.kind !== 'sleeping') return;
    phase.cancel();
    this.#begin();
  }

  /** Stops for good, after the current sweep. */
  async stop(): Promise<void> {
    const phase = this.#phase;
    this.#phase = { kind: 'stopped' };
    if (phase.kind === 'sleeping') phase.cancel();
    if (phase.kind === 'sweeping') await phase.done;
  }

  #begin(): void {
    const phase: Sweeping = { kind: 'sweeping', done: Promise.resolve(), isWokenAgain: false };
    this.#phase = phase;
    phase.done = this.#sweep().then((waitMs) => this.#end(phase, waitMs));
  }

  #end(phase: Sweeping, waitMs: number): void {
    if (this.#phase !== phase) return;
    if (phase.isWokenAgain) this.#begin();
    else this.#phase = { kind: 'sleeping', cancel: this.#clock.after(waitMs, () => this.#begin()) };
  }
}
