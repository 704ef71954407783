import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import { concernsKey, type KeyPause, KeyState, type KeyTrouble, type Pause } from './key-state.ts';
import type { ModelError, ModelErrorKind, ModelInfo } from './model.ts';
import type { ProviderState } from './models.ts';
import type { ProviderKey, ProviderKeys } from './provider-keys.ts';

const degradedAfter = 3;

type About = Pick<ModelInfo, 'provider' | 'modelId'>;

/** What a failed call reveals about its provider: nothing, that it refused or asked to wait, or that it does not answer correctly. */
const meaning: Readonly<Record<ModelErrorKind, 'nothing' | 'refused' | 'sick'>> = {
  auth: 'refused',
  billing: 'refused',
  rate_limit: 'refused',
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

interface Failing {
  failures: number;
  readonly agents: Set<string>;
  readonly models: Set<string>;
  readonly sinceMs: number;
  last: ModelErrorKind;
  cause: string;
}

/** A call of a model. */
export interface Calling {
  readonly model: About;
  readonly keys: ProviderKeys;
  readonly agentId: string;
  /** Id of the token, or of an actor without one. */
  readonly caller: string;
  /** An owner waits for it: refused credentials are tried once more. */
  readonly isExplicit: boolean;
}

/** State of a provider, or of one of its keys. */
export type KnownState = Omit<ProviderState, 'provider'>;

/**
 * What is known of each provider and of each of its keys from calls. A key that was refused or asked to wait is paused alone; the
 * provider is paused when all of its keys are.
 */
export class ProviderStates {
  readonly #bus: EventBus;
  readonly #clock: Clock;
  readonly #firstMs: () => number;
  readonly #startedAtMs: number;
  /** Keys with failed calls. A key that is replaced takes its state along. */
  readonly #keys = new WeakMap<ProviderKey, KeyState>();
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
  }

  /** Returns why and how long a model is not called; undefined when it may be with one of the keys. */
  pauseOf({ modelId }: About, keys: ProviderKeys, caller: string, isExplicit: boolean): KeyPause | undefined {
    let first: KeyPause | undefined;
    for (const key of keys) {
      const pause = this.#keys.get(key)?.pauseOf(modelId, caller, isExplicit);
      if (pause === undefined) return undefined;
      if (first === undefined || isBetter(pause, first)) first = pause;
    }
    return first;
  }

  /**
   * Returns the key for the next call of a model: of those that may be used, the one whose last refusal is longest ago. Calls stay with a
   * key as long as it works, because caches of prompts belong to an account. Undefined when there is none but those `tried`.
   */
  chooseKey(calling: Calling, tried?: ReadonlySet<ProviderKey>): ProviderKey | undefined {
    const usable = this.#longestUnrefused(calling, false, tried);
    return usable === undefined && calling.isExplicit ? this.#longestUnrefused(calling, true, tried) : usable;
  }

  /** Returns the pause that the failure starts, if any. */
  failed({ model: { provider, modelId }, keys, agentId, caller }: Calling, key: ProviderKey, error: ModelError): Pause | undefined {
    const pause = concernsKey(error) ? this.#stateOf(key).failed(modelId, caller, error) : undefined;
    const means = meaning[error.kind];
    if (means === 'nothing') return undefined;
    // Another key is used instead, so that nothing is wrong with the provider.
    if (means === 'refused' && keys.some((other) => other !== key && this.#keys.get(other)?.pauseOf(modelId, caller) === undefined)) return pause;
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
    return pause;
  }

  succeeded({ provider, modelId }: About, key: ProviderKey): void {
    const known = this.#keys.get(key);
    const entry = this.#failing.get(provider);
    if (known === undefined && entry === undefined && this.#watched.size === 0) return;
    const wasRefused = known?.succeeded(modelId) === true;
    const wasWatched = this.#watched.delete(`${provider}/${modelId}`);
    const wasFailing = entry?.models.delete(modelId) === true;
    if (entry !== undefined) this.#endFailing(provider, entry);
    if (wasFailing || wasRefused) this.#recoveredAtMs.set(provider, this.#clock.now());
    else if (!wasWatched) return;
    this.#notify(provider, [modelId]);
  }

  /** Clears what failed calls with some keys revealed, and with all of them what they revealed of the provider: the next call goes through. */
  clear(provider: string, keys: readonly ProviderKey[], isWhole = true): void {
    const watched = modelsIn(this.#watched, provider);
    const models = new Set([
      ...(this.#failing.get(provider)?.models ?? []),
      ...keys.flatMap((key) => this.#keys.get(key)?.models() ?? []),
      ...watched,
    ]);
    if (isWhole) this.#failing.delete(provider);
    for (const key of keys) this.#keys.delete(key);
    for (const modelId of watched) this.#watched.delete(`${provider}/${modelId}`);
    if (models.size === 0) return;
    this.#recoveredAtMs.set(provider, this.#clock.now());
    this.#notify(provider, models);
  }

  /** Returns the worst known state of the provider's models: refused or cooling when each of its keys is. */
  stateOf(provider: string, keys: ProviderKeys): ProviderState {
    const troubles = keys.flatMap((key) => this.#keys.get(key)?.trouble() ?? []);
    const [first] = troubles.length < keys.length ? [] : troubles.toSorted(bySoonest);
    if (first !== undefined) return { provider, ...this.#shown(first) };
    const failing = this.#failing.get(provider);
    if (failing !== undefined && meaning[failing.last] === 'sick' && (failing.failures >= degradedAfter || failing.last === 'network'))
      return { provider, state: 'unreachable', sinceMs: failing.sinceMs, cause: failing.cause };
    return { provider, ...this.#well(provider) };
  }

  /** Returns the worst known state of a key. */
  stateOfKey(provider: string, key: ProviderKey): KnownState {
    const trouble = this.#keys.get(key)?.trouble();
    return trouble === undefined ? this.#well(provider) : this.#shown(trouble);
  }

  watch(model: string): void {
    this.#watched.add(model);
  }

  onRecovered(listener: (model: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #stateOf(key: ProviderKey): KeyState {
    const known = this.#keys.get(key) ?? new KeyState(this.#clock, this.#firstMs);
    this.#keys.set(key, known);
    return known;
  }

  #longestUnrefused({ model: { modelId }, keys, caller }: Calling, isExplicit: boolean, tried?: ReadonlySet<ProviderKey>) {
    let chosen: ProviderKey | undefined;
    let chosenAt = Number.POSITIVE_INFINITY;
    for (const key of keys) {
      const known = this.#keys.get(key);
      const at = known?.refusedAt(modelId) ?? Number.NEGATIVE_INFINITY;
      if (at >= chosenAt || tried?.has(key) === true || known?.pauseOf(modelId, caller, isExplicit) !== undefined) continue;
      chosen = key;
      chosenAt = at;
    }
    return chosen;
  }

  #endFailing(provider: string, entry: Failing): void {
    if (entry.failures >= degradedAfter) this.#bus.emit('provider:recovered', { provider, timestamp: this.#clock.now() });
    entry.failures = 0;
    if (entry.models.size === 0) this.#failing.delete(provider);
  }

  #shown({ state, sinceMs, cause, leftMs }: KeyTrouble): KnownState {
    return { state, sinceMs, cause, ...(leftMs > 0 && { untilMs: this.#clock.now() + leftMs }) };
  }

  #well(provider: string): KnownState {
    return { state: 'ok', sinceMs: this.#recoveredAtMs.get(provider) ?? this.#startedAtMs };
  }

  #notify(provider: string, models: Iterable<string>): void {
    for (const modelId of models) for (const listener of this.#listeners) listener(`${provider}/${modelId}`);
  }
}

/** Waiting helps only where the provider asked for it; refused credentials stay refused. */
function isBetter(one: KeyPause, other: KeyPause): boolean {
  const waits = ({ why }: KeyPause) => why === 'rate_limit';
  return waits(one) === waits(other) ? one.leftMs < other.leftMs : waits(one);
}

/** A key that only waits is better than a refused one, then the pause that ends first. */
function bySoonest(one: KeyTrouble, other: KeyTrouble): number {
  return one.state === other.state ? one.leftMs - other.leftMs : one.state === 'cooling' ? -1 : 1;
}

/** Returns the ids of those models (`provider/modelId`) that belong to the provider. */
function modelsIn(names: Iterable<string>, provider: string): string[] {
  const prefix = `${provider}/`;
  return [...names].flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
}
