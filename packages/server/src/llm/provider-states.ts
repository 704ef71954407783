import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import { type CallerPause, Doubts } from './doubts.ts';
import type { ModelError, ModelErrorKind, ModelInfo } from './model.ts';
import type { ProviderState } from './models.ts';

const capMs = 3_600_000;
const growth = 5;
const degradedAfter = 3;

type Refusal = Extract<ModelErrorKind, 'auth' | 'billing' | 'rate_limit'>;
type About = Pick<ModelInfo, 'provider' | 'modelId'>;

export interface Pause {
  readonly ms: number;
  /** Consecutive refusals, including this one. */
  readonly failures: number;
}

/** What a failed call reveals about its provider: nothing, that it refused or asked to wait, or that it does not answer correctly. */
const meaning: Readonly<Record<ModelErrorKind, 'nothing' | 'refused' | 'cooling' | 'sick'>> = {
  auth: 'refused',
  billing: 'refused',
  rate_limit: 'cooling',
  server: 'sick',
  overloaded: 'sick',
  network: 'sick',
  timeout: 'sick',
  bad_response: 'sick',
  oversized: 'sick',
  bad_request: 'nothing',
  context_length: 'nothing',
  aborted: 'nothing',
};

interface Paused {
  /** Monotonic time. */
  readonly until: number;
  readonly failures: number;
  readonly why: Refusal;
  readonly cause: string;
  readonly sinceMs: number;
}

interface Failing {
  failures: number;
  readonly agents: Set<string>;
  readonly models: Set<string>;
  readonly sinceMs: number;
  last: ModelErrorKind;
  cause: string;
}

/** Identifies the caller of a model. */
export interface Calling {
  readonly agentId: string;
  /** Id of the token, or of an actor without one. */
  readonly caller: string;
}

/**
 * What is known of each provider from calls to it. Pauses are kept per model, because one model may be out of
 * quota or not allowed while the others answer. A pause is the provider's own `Retry-After` if it sends one,
 * otherwise `firstMs`, five times longer after each further refusal, an hour at most. A refusal that may concern the
 * request alone pauses the model only for its caller (`Doubts`).
 */
export class ProviderStates {
  readonly #bus: EventBus;
  readonly #clock: Clock;
  readonly #firstMs: () => number;
  readonly #startedAtMs: number;
  readonly #pauses = new Map<string, Map<string, Paused>>();
  readonly #doubts: Doubts;
  readonly #failing = new Map<string, Failing>();
  readonly #recoveredAtMs = new Map<string, number>();
  /** Models whose next answer is reported although they have not failed. */
  readonly #watched = new Set<string>();
  readonly #listeners = new Set<(model: string) => void>();

  constructor(bus: EventBus, clock: Clock, firstMs: () => number) {
    this.#bus = bus;
    this.#clock = clock;
    this.#firstMs = firstMs;
    this.#startedAtMs = clock.now();
    this.#doubts = new Doubts(clock, firstMs);
  }

  /** Returns why and how long a model is not called; undefined when it may be. An explicit call ignores refused credentials. */
  pauseOf(
    model: About,
    caller: string,
    isExplicit = false,
  ): CallerPause | { readonly leftMs: number; readonly why: Refusal; readonly cause: string } | undefined {
    const pause = this.#pauses.get(model.provider)?.get(model.modelId);
    const isIgnored = pause === undefined || (isExplicit && meaning[pause.why] === 'refused');
    const leftMs = isIgnored ? 0 : Math.ceil(pause.until - this.#clock.monotonic());
    if (pause !== undefined && leftMs > 0) return { leftMs, why: pause.why, cause: pause.cause };
    return isExplicit ? undefined : this.#doubts.pauseOf(nameOf(model), caller);
  }

  /** Returns the pause that the failure starts, if any. */
  failed({ provider, modelId }: About, { agentId, caller }: Calling, error: ModelError): Pause | undefined {
    if (error.possibly !== undefined) this.#doubts.add(`${provider}/${modelId}`, caller, error.possibly, error.message);
    if (meaning[error.kind] === 'nothing') return undefined;
    const nowMs = this.#clock.now();
    const entry = this.#failing.get(provider) ?? {
      failures: 0,
      agents: new Set<string>(),
      models: new Set<string>(),
      sinceMs: nowMs,
      last: error.kind,
      cause: error.message,
    };
    this.#failing.set(provider, entry);
    entry.failures += 1;
    entry.agents.add(agentId);
    entry.models.add(modelId);
    entry.last = error.kind;
    entry.cause = error.message;
    if (entry.failures === degradedAfter) this.#bus.emit('provider:degraded', { provider, failingAgents: entry.agents.size, timestamp: nowMs });
    return this.#pause({ provider, modelId }, error, nowMs);
  }

  succeeded({ provider, modelId }: About): void {
    const entry = this.#failing.get(provider);
    const wasPaused = this.#pauses.get(provider)?.delete(modelId) === true;
    const wasDoubted = this.#doubts.forget(`${provider}/${modelId}`);
    const wasWatched = this.#watched.delete(`${provider}/${modelId}`);
    if (entry === undefined && !wasDoubted && !wasWatched) return;
    const wasFailing = entry?.models.delete(modelId) === true;
    if (entry !== undefined) this.#endFailing(provider, entry);
    if (wasFailing || wasPaused || wasDoubted) this.#recoveredAtMs.set(provider, this.#clock.now());
    else if (!wasWatched) return;
    this.#notify(provider, [modelId]);
  }

  /** Clears what failed calls revealed, so that the next call goes through. */
  clear(provider: string): void {
    const doubted = modelsIn(this.#doubts.models(), provider);
    const watched = modelsIn(this.#watched, provider);
    const models = new Set([...(this.#failing.get(provider)?.models ?? []), ...(this.#pauses.get(provider)?.keys() ?? []), ...doubted, ...watched]);
    this.#failing.delete(provider);
    this.#pauses.delete(provider);
    for (const modelId of doubted) this.#doubts.forget(`${provider}/${modelId}`);
    for (const modelId of watched) this.#watched.delete(`${provider}/${modelId}`);
    if (models.size === 0) return;
    this.#recoveredAtMs.set(provider, this.#clock.now());
    this.#notify(provider, models);
  }

  /** Returns the worst known state of the provider's models. */
  stateOf(provider: string): ProviderState {
    const pauses = [...(this.#pauses.get(provider)?.values() ?? [])];
    const refused = pauses.find(({ why }) => meaning[why] === 'refused');
    if (refused !== undefined) return this.#paused(provider, 'refused', refused);
    const cooling = pauses.filter(({ until }) => until > this.#clock.monotonic()).toSorted((a, b) => b.until - a.until)[0];
    if (cooling !== undefined) return this.#paused(provider, 'cooling', cooling);
    for (const modelId of modelsIn(this.#doubts.models(), provider)) {
      const shared = this.#doubts.sharedOf(`${provider}/${modelId}`);
      if (shared !== undefined) return { provider, state: 'refused', sinceMs: shared.sinceMs, cause: shared.cause };
    }
    const failing = this.#failing.get(provider);
    if (failing !== undefined && meaning[failing.last] === 'sick' && (failing.failures >= degradedAfter || failing.last === 'network'))
      return { provider, state: 'unreachable', sinceMs: failing.sinceMs, cause: failing.cause };
    return { provider, state: 'ok', sinceMs: this.#recoveredAtMs.get(provider) ?? this.#startedAtMs };
  }

  watch(model: string): void {
    this.#watched.add(model);
  }

  onRecovered(listener: (model: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #endFailing(provider: string, entry: Failing): void {
    if (entry.failures >= degradedAfter) this.#bus.emit('provider:recovered', { provider, timestamp: this.#clock.now() });
    entry.failures = 0;
    if (entry.models.size === 0) this.#failing.delete(provider);
  }

  #pause({ provider, modelId }: About, error: ModelError, nowMs: number): Pause | undefined {
    const { kind } = error;
    if (kind !== 'auth' && kind !== 'billing' && kind !== 'rate_limit') return undefined;
    const ofProvider = this.#pauses.get(provider) ?? new Map<string, Paused>();
    this.#pauses.set(provider, ofProvider);
    const before = ofProvider.get(modelId);
    const failures = (before?.failures ?? 0) + 1;
    const ms = Math.min(capMs, error.retryAfterMs ?? this.#firstMs() * growth ** Math.min(failures - 1, 10));
    ofProvider.set(modelId, {
      until: this.#clock.monotonic() + ms,
      failures,
      why: kind,
      cause: error.message,
      sinceMs: before?.sinceMs ?? nowMs,
    });
    return ms > 0 ? { ms, failures } : undefined;
  }

  #paused(provider: string, state: 'refused' | 'cooling', { until, cause, sinceMs }: Paused): ProviderState {
    const leftMs = Math.max(0, Math.ceil(until - this.#clock.monotonic()));
    return { provider, state, sinceMs, cause, ...(leftMs > 0 && { untilMs: this.#clock.now() + leftMs }) };
  }

  #notify(provider: string, models: Iterable<string>): void {
    for (const modelId of models) for (const listener of this.#listeners) listener(`${provider}/${modelId}`);
  }
}

/** Returns the ids of those models (`provider/modelId`) that belong to the provider. */
function modelsIn(names: Iterable<string>, provider: string): string[] {
  const prefix = `${provider}/`;
  return [...names].flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
}

const nameOf = ({ provider, modelId }: About) => `${provider}/${modelId}`;
