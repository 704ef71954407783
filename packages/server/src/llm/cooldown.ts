import type { Clock } from '../kernel/clock.ts';
import type { ModelError, ModelErrorKind } from './model.ts';

const capMs = 3_600_000;
const growth = 5;

type Refusal = Extract<ModelErrorKind, 'auth' | 'billing' | 'rate_limit'>;

export interface Pause {
  readonly ms: number;
  /** Refusals in a row, this one included. */
  readonly failures: number;
}

/**
 * Remembers which providers refused their key or asked to wait. The pause is the provider's own `Retry-After` where it
 * names one, otherwise `firstMs`, five times longer after each further refusal, an hour at most.
 */
export class Cooldowns {
  readonly #clock: Clock;
  readonly #firstMs: number;
  readonly #byProvider = new Map<string, { until: number; failures: number; why: Refusal }>();

  constructor(clock: Clock, firstMs: number) {
    this.#clock = clock;
    this.#firstMs = firstMs;
  }

  /** Milliseconds for which the provider is still left alone; 0 when it may be asked. */
  remainingMs(provider: string): number {
    const entry = this.#byProvider.get(provider);
    return entry === undefined ? 0 : Math.max(0, Math.ceil(entry.until - this.#clock.monotonic()));
  }

  /** What the provider refused with last; undefined when it is not left alone. */
  reason(provider: string): Refusal | undefined {
    return this.remainingMs(provider) === 0 ? undefined : this.#byProvider.get(provider)?.why;
  }

  /** Begins a pause when the error asks for one. */
  failed(provider: string, error: ModelError): Pause | undefined {
    if (error.kind !== 'auth' && error.kind !== 'billing' && error.kind !== 'rate_limit') return undefined;
    const failures = (this.#byProvider.get(provider)?.failures ?? 0) + 1;
    const ms = Math.min(capMs, error.retryAfterMs ?? this.#firstMs * growth ** Math.min(failures - 1, 10));
    this.#byProvider.set(provider, { until: this.#clock.monotonic() + ms, failures, why: error.kind });
    return ms > 0 ? { ms, failures } : undefined;
  }

  succeeded(provider: string): void {
    this.#byProvider.delete(provider);
  }
}
