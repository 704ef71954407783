import type { Clock } from '../kernel/clock.ts';
import type { ModelError } from './model.ts';

type Concern = NonNullable<ModelError['possibly']>;

interface Refused {
  count: number;
  /** Monotonic time. */
  pausedUntil: number;
  readonly why: Concern;
  readonly cause: string;
  readonly sinceMs: number;
}

/** Why a caller's calls to a model are paused. */
export interface CallerPause {
  readonly leftMs: number;
  readonly why: Concern;
  readonly cause: string;
}

const pausedAfter = 3;
const maxCallers = 1000;

/**
 * Tracks refusals that may concern the request as well as the key or the account. A caller's third consecutive one pauses the
 * model for that caller alone, so that an account without credit is not called all the time and nobody's input pauses the
 * model for somebody else. Any success of the model clears all of it.
 */
export class Doubts {
  readonly #clock: Clock;
  readonly #pauseMs: () => number;
  readonly #callers = new Map<string, Map<string, Refused>>();

  constructor(clock: Clock, pauseMs: () => number) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
  }

  add(model: string, caller: string, why: Concern, cause: string): void {
    const callers = this.#callers.get(model) ?? new Map<string, Refused>();
    this.#callers.set(model, callers);
    const before = callers.get(caller);
    const count = (before?.count ?? 0) + 1;
    const pausedUntil = count < pausedAfter ? 0 : this.#clock.monotonic() + this.#pauseMs();
    callers.set(caller, { count, pausedUntil, why, cause, sinceMs: before?.sinceMs ?? this.#clock.now() });
    const [oldest] = callers.keys();
    if (callers.size > maxCallers && oldest !== undefined) callers.delete(oldest);
  }

  /** Returns whether there was anything to forget. */
  forget(model: string): boolean {
    return this.#callers.delete(model);
  }

  models(): Iterable<string> {
    return this.#callers.keys();
  }

  /** Returns undefined when the caller may call the model. */
  pauseOf(model: string, caller: string): CallerPause | undefined {
    const refused = this.#callers.get(model)?.get(caller);
    if (refused === undefined) return undefined;
    const leftMs = Math.ceil(refused.pausedUntil - this.#clock.monotonic());
    return leftMs > 0 ? { leftMs, why: refused.why, cause: refused.cause } : undefined;
  }

  /** Returns the refusal of a model that several callers got, none with a success since: a reason for the owner to check the account. */
  sharedOf(model: string): Pick<Refused, 'cause' | 'sinceMs'> | undefined {
    const callers = this.#callers.get(model);
    return callers === undefined || callers.size < 2 ? undefined : [...callers.values()][0];
  }
}
