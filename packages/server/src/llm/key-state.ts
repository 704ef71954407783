import type { Clock } from '../kernel/clock.ts';
import { type CallerPause, Doubts } from './doubts.ts';
import type { ModelError, ModelErrorKind } from './model.ts';

const capMs = 3_600_000;
const growth = 5;

type Refusal = Extract<ModelErrorKind, 'auth' | 'billing' | 'rate_limit'>;

/** Whether a failure is about the key with which a call was made. */
export function concernsKey({ kind, possibly }: ModelError): boolean {
  return possibly !== undefined || refusalOf(kind) !== undefined;
}

function refusalOf(kind: ModelErrorKind): Refusal | undefined {
  return kind === 'auth' || kind === 'billing' || kind === 'rate_limit' ? kind : undefined;
}

export interface Pause {
  readonly ms: number;
  /** Consecutive refusals, including this one. */
  readonly failures: number;
}

/** Why and how long calls with a key are paused. */
export type KeyPause = CallerPause | { readonly leftMs: number; readonly why: Refusal; readonly cause: string };

/** The worst that is known of a key. */
export interface KeyTrouble {
  readonly state: 'refused' | 'cooling';
  readonly sinceMs: number;
  readonly cause: string;
  /** Until its pause ends; 0 when it has ended, or there is none. */
  readonly leftMs: number;
}

interface Paused {
  /** Monotonic time. */
  readonly until: number;
  readonly failures: number;
  readonly why: Refusal;
  readonly cause: string;
  readonly sinceMs: number;
}

/**
 * What failed calls with one key have shown. Pauses are kept per model, because one model may be out of quota or not allowed while the
 * others answer. A pause is the provider's own `Retry-After` if it sends one, otherwise `firstMs`, five times longer after each further
 * refusal, an hour at most. A refusal that may concern the request alone pauses the model only for its caller (`Doubts`).
 */
export class KeyState {
  readonly #clock: Clock;
  readonly #firstMs: () => number;
  readonly #pauses = new Map<string, Paused>();
  readonly #doubts: Doubts;
  /** Monotonic times of the last refusals, by model. */
  readonly #refusedAt = new Map<string, number>();

  constructor(clock: Clock, firstMs: () => number) {
    this.#clock = clock;
    this.#firstMs = firstMs;
    this.#doubts = new Doubts(clock, firstMs);
  }

  /** Returns undefined when the key may be used. An explicit call ignores refused credentials. */
  pauseOf(modelId: string, caller: string, isExplicit = false): KeyPause | undefined {
    const pause = this.#pauses.get(modelId);
    const isIgnored = pause === undefined || (isExplicit && pause.why !== 'rate_limit');
    const leftMs = isIgnored ? 0 : Math.ceil(pause.until - this.#clock.monotonic());
    if (pause !== undefined && leftMs > 0) return { leftMs, why: pause.why, cause: pause.cause };
    return isExplicit ? undefined : this.#doubts.pauseOf(modelId, caller);
  }

  /** Returns when calls of a model with this key were last refused, in monotonic time. */
  refusedAt(modelId: string): number {
    return this.#refusedAt.get(modelId) ?? Number.NEGATIVE_INFINITY;
  }

  /** Takes a failure that `concernsKey` in; returns the pause that it starts, if any. */
  failed(modelId: string, caller: string, error: ModelError): Pause | undefined {
    const monotonicMs = this.#clock.monotonic();
    this.#refusedAt.set(modelId, monotonicMs);
    if (error.possibly !== undefined) this.#doubts.add(modelId, caller, error.possibly, error.message);
    const why = refusalOf(error.kind);
    if (why === undefined) return undefined;
    const before = this.#pauses.get(modelId);
    // Calls that ran when the pause began are asked to wait for the same reason.
    const isSame = before?.why === 'rate_limit' && why === 'rate_limit' && before.until > monotonicMs;
    const failures = (before?.failures ?? 0) + (isSame ? 0 : 1);
    const ms = Math.min(capMs, error.retryAfterMs ?? this.#firstMs() * growth ** Math.min(failures - 1, 10));
    const until = monotonicMs + ms;
    this.#pauses.set(modelId, {
      until: isSame ? Math.max(before.until, until) : until,
      failures,
      why,
      cause: error.message,
      sinceMs: before?.sinceMs ?? this.#clock.now(),
    });
    return ms > 0 ? { ms, failures } : undefined;
  }

  /** Returns whether a model that answers was paused or doubted. */
  succeeded(modelId: string): boolean {
    const wasPaused = this.#pauses.delete(modelId);
    return this.#doubts.forget(modelId) || wasPaused;
  }

  /** Returns the models that were refused. */
  models(): readonly string[] {
    return [...this.#pauses.keys(), ...this.#doubts.models()];
  }

  trouble(): KeyTrouble | undefined {
    const pauses = [...this.#pauses.values()].map((pause) => ({ ...pause, leftMs: Math.max(0, Math.ceil(pause.until - this.#clock.monotonic())) }));
    const refused = pauses.find(({ why }) => why !== 'rate_limit');
    if (refused !== undefined) return { ...refused, state: 'refused' };
    const cooling = pauses.filter(({ leftMs }) => leftMs > 0).toSorted((a, b) => b.leftMs - a.leftMs)[0];
    if (cooling !== undefined) return { ...cooling, state: 'cooling' };
    for (const modelId of this.#doubts.models()) {
      const shared = this.#doubts.sharedOf(modelId);
      if (shared !== undefined) return { state: 'refused', ...shared, leftMs: 0 };
    }
    return undefined;
  }
}
