import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { Cooldowns } from './cooldown.ts';
import {
  type ModelClient,
  ModelError,
  type ModelErrorKind,
  type ModelInfo,
  type ModelRequest,
  type ModelResult,
  type ModelSink,
  type ModelUsage,
} from './model.ts';
import type { Attempt, Models } from './models.ts';
import type { ProviderHealth } from './provider-health.ts';

/** Another model may survive these; the others would fail everywhere, or nobody waits any more. */
const elsewhere: ReadonlySet<ModelErrorKind> = new Set([
  'auth',
  'billing',
  'rate_limit',
  'overloaded',
  'server',
  'network',
  'timeout',
  'bad_response',
]);
const nothingUsed: ModelUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false };
const overloadedPauseMs = 500;
const longestRetryPauseMs = 2000;

export interface GenerateDeps {
  readonly clientOf: (provider: string) => ModelClient;
  readonly keyNameOf: (provider: string) => string;
  readonly cooldowns: Cooldowns;
  readonly health: ProviderHealth;
  readonly bus: EventBus;
  readonly clock: Clock;
}

type Call = Parameters<Models['generate']>[0];
type Tried = { readonly result: ModelResult } | { readonly error: ModelError };

/** Makes `Models.generate`: cooldowns, one retry where nothing was lost, then the next model of the list. */
export function createGenerate(deps: GenerateDeps): Models['generate'] {
  return async function generate(call, sink) {
    const ready = call.models.filter((model) => deps.cooldowns.remainingMs(model.provider) === 0);
    if (ready.length === 0) throw allCoolingDown(call.models, deps.cooldowns);
    let attempts = 0;
    let last: { readonly model: ModelInfo; readonly error: ModelError } | undefined;
    for (const model of ready) {
      // A refused key of the model before may belong to this one too.
      if (last !== undefined && deps.cooldowns.remainingMs(model.provider) > 0) continue;
      // An attempt is only repeated with the same model when it used nothing.
      if (last?.error.usage !== undefined && call.mayGoOn !== undefined && !(await call.mayGoOn())) throw last.error;
      if (last !== undefined) announceFallback(deps, call.agentId, last, model, attempts);
      let tried = await attempt(deps, call, model, sink);
      attempts += 1;
      if ('error' in tried && (await mayRetry(deps.clock, tried.error, call.request.signal))) {
        tried = await attempt(deps, call, model, sink);
        attempts += 1;
      }
      if ('result' in tried) return { result: tried.result, model };
      last = { model, error: tried.error };
      if (!elsewhere.has(tried.error.kind) || tried.error.partial !== undefined) throw tried.error;
    }
    if (last === undefined) throw allCoolingDown(call.models, deps.cooldowns);
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

async function attempt(deps: GenerateDeps, call: Call, model: ModelInfo, sink: ModelSink | undefined): Promise<Tried> {
  const { clock, cooldowns, health, bus } = deps;
  const startedAtMs = clock.now();
  const begun = clock.monotonic();
  const booked = (outcome: Attempt['outcome'], usage: ModelUsage, responseId: string | undefined) =>
    call.onAttempt({ model, usage, latencyMs: clock.monotonic() - begun, startedAtMs, outcome, ...(responseId === undefined ? {} : { responseId }) });
  let result: ModelResult;
  try {
    const request: ModelRequest = { ...call.request, ...boundFor(model, call), model };
    result = await deps.clientOf(model.provider).generate(request, sink);
  } catch (thrown) {
    const error =
      thrown instanceof ModelError ? thrown : new ModelError('server', `Provider "${model.provider}": the client failed`, { cause: thrown });
    booked('error', error.partial?.usage ?? error.usage ?? nothingUsed, error.partial?.responseId);
    health.failed(model.provider, call.agentId, error.kind);
    const pause = cooldowns.failed(model.provider, error);
    if (pause !== undefined)
      bus.emit('model:auth_cooldown', {
        provider: model.provider,
        keyName: deps.keyNameOf(model.provider),
        cooldownMs: pause.ms,
        failureCount: pause.failures,
        timestamp: clock.now(),
      });
    return { error };
  }
  booked('ok', result.usage, result.responseId);
  health.succeeded(model.provider);
  cooldowns.succeeded(model.provider);
  return { result };
}

/** A length that suits the first model of the list may be more than a later one can make. */
function boundFor(model: ModelInfo, { models, request }: Call): { readonly maxTokens?: number } {
  if (model === models[0] || request.maxTokens === undefined || request.maxTokens <= model.maxTokens) return {};
  return { maxTokens: model.maxTokens };
}

/** Once more with the same model: at once when the connection failed before a byte came, after a short pause when the provider was overloaded. */
async function mayRetry(clock: Clock, error: ModelError, signal: AbortSignal): Promise<boolean> {
  if (error.partial !== undefined || error.usage !== undefined || signal.aborted) return false;
  if (error.kind === 'network') return true;
  if (error.kind !== 'overloaded' || (error.retryAfterMs ?? 0) > longestRetryPauseMs) return false;
  await pause(clock, error.retryAfterMs ?? overloadedPauseMs, signal);
  return !signal.aborted;
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal.addEventListener('abort', done, { once: true });
  });
}

function allCoolingDown(models: readonly ModelInfo[], cooldowns: Cooldowns): ModelError {
  if (models.length === 0) return new ModelError('bad_request', 'No model was named');
  const reasons = models.map((model) => cooldowns.reason(model.provider));
  // Waiting helps only where one of them asked for it; a refused key stays what it is.
  const kind = reasons.includes('rate_limit') ? 'rate_limit' : (reasons[0] ?? 'rate_limit');
  const paused = models.filter((_, index) => kind !== 'rate_limit' || reasons[index] === kind);
  const retryAfterMs = Math.min(...(paused.length === 0 ? models : paused).map((model) => cooldowns.remainingMs(model.provider)));
  const providers = [...new Set(models.map((model) => model.provider))].join(', ');
  return new ModelError(
    kind,
    `Every provider of the list (${providers}) refused lately and is left alone for ${Math.ceil(retryAfterMs / 1000)} s more`,
    { retryAfterMs },
  );
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
