import type { Clock } from '../kernel/clock.ts';
import { sleep } from '../kernel/timers.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import { isMissingPart, missingPart } from '../kernel/missing-part.ts';
import { ModelError, type ModelErrorKind, type ModelInfo, type ModelRequest, type ModelResult, type ModelSink, type ModelUsage } from './model.ts';
import type { Attempt, Models } from './models.ts';
import { concernsKey } from './key-state.ts';
import type { ProviderKey, ProviderKeys } from './provider-keys.ts';
import type { Calling, ProviderStates } from './provider-states.ts';

/** Whether another model may succeed after the failure; the other failures would occur everywhere, or nobody waits any more. */
const mayFallBack: Readonly<Record<ModelErrorKind, boolean>> = {
  auth: true,
  billing: true,
  rate_limit: true,
  overloaded: true,
  server: true,
  network: true,
  timeout: true,
  bad_response: true,
  oversized: true,
  bad_request: false,
  context_length: false,
  aborted: false,
};
/** Refusals of a request that another provider may accept: it has the model, or a higher limit. */
const statusesOfOneProvider: ReadonlySet<number | undefined> = new Set([404, 413]);

const concernsOneProvider = ({ kind, status, possibly }: ModelError): boolean =>
  mayFallBack[kind] || possibly !== undefined || statusesOfOneProvider.has(status);

export const nothingUsed: ModelUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false };
const overloadedPauseMs = 500;
const longestRetryPauseMs = 2000;

export interface GenerateDeps {
  /** Calls a model of a provider with one of its keys. */
  readonly call: (model: ModelInfo, key: ProviderKey, request: ModelRequest, sink?: ModelSink) => Promise<ModelResult>;
  readonly keysOf: (model: ModelInfo) => ProviderKeys;
  readonly states: ProviderStates;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly maxAnswerBytes: () => number;
  readonly hideSecrets?: (text: string) => string;
}

type Call = Parameters<Models['generate']>[0];
type Tried = { readonly result: ModelResult } | { readonly error: ModelError };
/** The outcome of a model, and how many calls it took. */
type TriedModel = Tried & { readonly calls: number };

/** Creates `Models.generate`: cooldowns, one retry where nothing was lost, other keys of the provider, then the next model of the list. */
export function createGenerate(deps: GenerateDeps): Models['generate'] {
  return async function generate(call, sink) {
    const caller = callerOf(call);
    const isExplicit = call.isExplicit === true;
    const ready = call.models.filter((model) => deps.states.pauseOf(model, deps.keysOf(model), caller, isExplicit) === undefined);
    if (ready.length === 0) throw allPaused(call, deps);
    let attempts = 0;
    let last: { readonly model: ModelInfo; readonly error: ModelError } | undefined;
    for (const model of ready) {
      // An attempt is only repeated with the same model when it used nothing.
      if (last?.error.usage !== undefined && call.mayContinue !== undefined && !(await call.mayContinue())) throw last.error;
      if (last !== undefined) announceFallback(deps, call.agentId, last, model, attempts);
      const tried = await tryKeys(deps, call, model, sink);
      attempts += tried.calls;
      if ('result' in tried) return { result: tried.result, model };
      last = { model, error: tried.error };
      // Text that was only watched is generated again; the requester has not seen any of it.
      if ((tried.error.partial !== undefined && sink?.onlyWatched !== true) || !concernsOneProvider(tried.error)) throw tried.error;
    }
    if (last === undefined) throw allPaused(call, deps);
    deps.bus.emit('model:fallback_exhausted', {
      agentId: call.agentId,
      provider: last.model.provider,
      model: last.model.modelId,
      totalAttempts: attempts,
      timestamp: deps.clock.now(),
    });
    throw last.error;
  };
}

/** Calls a model with one key after the other, as long as the refusals are about the keys and used nothing. */
async function tryKeys(deps: GenerateDeps, call: Call, model: ModelInfo, sink: ModelSink | undefined): Promise<TriedModel> {
  const keys = deps.keysOf(model);
  let key: ProviderKey = keys.length === 1 ? keys[0] : (deps.states.chooseKey(callingOf(call, model, keys)) ?? keys[0]);
  let refused: Set<ProviderKey> | undefined;
  for (let calls = 1; ; calls += 1) {
    let tried = await attempt(deps, call, model, key, sink);
    if ('error' in tried && (await mayRetry(deps.clock, tried.error, call.request.signal))) {
      tried = await attempt(deps, call, model, key, sink);
      calls += 1;
    }
    if ('result' in tried) return { result: tried.result, calls };
    const { error } = tried;
    if (keys.length === 1 || !isOfKeyAlone(error) || call.request.signal.aborted) return { error, calls };
    refused = (refused ?? new Set()).add(key);
    const next = deps.states.chooseKey(callingOf(call, model, keys), refused);
    if (next === undefined) return { error, calls };
    key = next;
  }
}

const isOfKeyAlone = (error: ModelError): boolean => concernsKey(error) && error.partial === undefined && error.usage === undefined;

function callingOf(call: Call, model: ModelInfo, keys: ProviderKeys): Calling {
  return { model, keys, agentId: call.agentId, caller: callerOf(call), isExplicit: call.isExplicit === true };
}

async function attempt(deps: GenerateDeps, call: Call, model: ModelInfo, key: ProviderKey, sink: ModelSink | undefined): Promise<Tried> {
  const { clock, states, bus } = deps;
  const startedAtMs = clock.now();
  const begun = clock.monotonic();
  const booked = (how: Pick<Attempt, 'outcome' | 'error'>, usage: ModelUsage, responseId: string | undefined) =>
    call.onAttempt({ model, usage, latencyMs: clock.monotonic() - begun, startedAtMs, ...how, ...(responseId === undefined ? {} : { responseId }) });
  let result: ModelResult;
  try {
    const request: ModelRequest = { ...call.request, ...boundFor(model, call), model, maxAnswerBytes: deps.maxAnswerBytes() };
    result = await deps.call(model, key, request, sink);
  } catch (thrown) {
    const error = asModelError(thrown, model.provider, deps.hideSecrets);
    booked({ outcome: 'error', error }, error.partial?.usage ?? error.usage ?? nothingUsed, error.partial?.responseId);
    const pause = states.failed(callingOf(call, model, deps.keysOf(model)), key, error);
    if (pause !== undefined)
      bus.emit('model:auth_cooldown', {
        provider: model.provider,
        keyName: key.name,
        cooldownMs: pause.ms,
        failureCount: pause.failures,
        timestamp: clock.now(),
      });
    return { error };
  }
  booked({ outcome: 'ok' }, result.usage, result.responseId);
  states.succeeded(model, key);
  return { result };
}

/** Returns what a client threw as a ModelError, without secrets. */
export function asModelError(thrown: unknown, provider: string, hideSecrets: ((text: string) => string) | undefined): ModelError {
  const error =
    thrown instanceof ModelError
      ? thrown
      : new ModelError('server', isMissingPart(thrown) ? missingPart : `Provider "${provider}": the client failed`, { cause: thrown });
  if (hideSecrets !== undefined) error.message = hideSecrets(error.message);
  return error;
}

/** Limits the answer length: one that suits the first model of the list may be more than a later one supports. */
function boundFor(model: ModelInfo, { models, request }: Call): { readonly maxTokens?: number } {
  if (model === models[0] || request.maxTokens === undefined || request.maxTokens <= model.maxTokens) return {};
  return { maxTokens: model.maxTokens };
}

/** Whether to retry with the same model: at once when the connection failed before the first byte, after a pause when it was overloaded. */
async function mayRetry(clock: Clock, error: ModelError, signal: AbortSignal): Promise<boolean> {
  if (error.partial !== undefined || error.usage !== undefined || signal.aborted) return false;
  if (error.kind === 'network') return true;
  if (error.kind !== 'overloaded' || (error.retryAfterMs ?? 0) > longestRetryPauseMs) return false;
  await sleep(clock, error.retryAfterMs ?? overloadedPauseMs, signal);
  return !signal.aborted;
}

/** What an agent does on its own behalf counts as one caller. */
const callerOf = ({ caller, agentId }: Call): string => caller ?? `agent:${agentId}`;

function allPaused(call: Call, { states, keysOf }: GenerateDeps): ModelError {
  const pauses = call.models.flatMap((model) => states.pauseOf(model, keysOf(model), callerOf(call), false) ?? []);
  // Waiting helps only when a provider asked for it; refused credentials stay refused.
  const paused = pauses.filter(({ why }) => why === 'rate_limit');
  const [first] = (paused.length > 0 ? paused : pauses).toSorted((a, b) => a.leftMs - b.leftMs);
  if (first === undefined) return new ModelError('bad_request', 'No model was named');
  const message = `${first.cause} (not called again for ${Math.ceil(first.leftMs / 1000)} s)`;
  return new ModelError(first.why, message, { retryAfterMs: first.leftMs });
}

function announceFallback(
  { bus, clock }: GenerateDeps,
  agentId: string,
  from: { readonly model: ModelInfo; readonly error: ModelError },
  to: ModelInfo,
  attemptNumber: number,
) {
  bus.emit('model:fallback_attempt', {
    agentId,
    fromProvider: from.model.provider,
    fromModel: from.model.modelId,
    toProvider: to.provider,
    toModel: to.modelId,
    error: from.error.kind,
    attemptNumber,
    timestamp: clock.now(),
  });
}
