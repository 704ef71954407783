import type { EventBus } from '../kernel/event-bus.ts';
import type { Clock } from '../kernel/clock.ts';
import type { ModelErrorKind } from './model.ts';

const degradedAfter = 3;
/** Faults of the request or of the caller say nothing about the provider. */
const notItsFault: ReadonlySet<ModelErrorKind> = new Set(['bad_request', 'context_length', 'aborted']);

/** Announces `provider:degraded` after three failures in a row and `provider:recovered` with the next success. */
export class ProviderHealth {
  readonly #bus: EventBus;
  readonly #clock: Clock;
  readonly #failing = new Map<string, { failures: number; readonly agents: Set<string> }>();

  constructor(bus: EventBus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
  }

  failed(provider: string, agentId: string, kind: ModelErrorKind): void {
    if (notItsFault.has(kind)) return;
    const entry = this.#failing.get(provider) ?? { failures: 0, agents: new Set<string>() };
    this.#failing.set(provider, entry);
    entry.failures += 1;
    entry.agents.add(agentId);
    if (entry.failures === degradedAfter)
      this.#bus.emit('provider:degraded', { provider, failingAgents: entry.agents.size, timestamp: this.#clock.now() });
  }

  succeeded(provider: string): void {
    const entry = this.#failing.get(provider);
    if (entry === undefined) return;
    this.#failing.delete(provider);
    if (entry.failures >= degradedAfter) this.#bus.emit('provider:recovered', { provider, timestamp: this.#clock.now() });
  }
}
