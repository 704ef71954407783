import type { AgentConfig } from '@gatehouse/contract';
import type { Clock } from '../kernel/clock.ts';
import type { ModelError, ModelErrorKind, ModelInfo } from '../llm/model.ts';
import type { Attempt } from '../llm/models.ts';

/** Which caller calls which models for which agent. */
export interface Admitting {
  readonly agentId: string;
  /** Id of the token, or of an actor without one. */
  readonly caller: string;
  readonly models: readonly ModelInfo[];
  readonly config: AgentConfig['circuitBreaker'];
}

/** Permit for one model call. */
export interface Admission {
  /** Models whose breaker is not open; never empty. */
  readonly models: readonly ModelInfo[];
  /** Called for each attempt; the last one of each model counts. */
  observe(attempt: Attempt): void;
  /** Called once, when the call is over; `hung`: nothing arrived until the turn's time ran out. Returns the breakers that it opened or closed. */
  end(hung: boolean): readonly BreakerChange[];
}

/**
 * One breaker per agent and model: after a number of consecutive failed calls it opens, and the model is skipped; after
 * `resetMs` one call may try, and closes or reopens it. While it is open, a caller whose own calls did not fail may try
 * as well, so that nobody can make another caller's healthy model refuse.
 */
export interface CircuitBreakers {
  admit(call: Admitting): Admission | { readonly retryAfterMs: number; readonly cause?: string };
  /** Closes the breakers of a model (`provider/model`) that is known to answer, or should be retried now. */
  close(model: string): void;
}

/** Whether a failed call counts against its model. Refusals of one request, budgets, keys and rate limits do not. */
const isSick: Readonly<Record<ModelErrorKind, boolean>> = {
  server: true,
  overloaded: true,
  network: true,
  timeout: true,
  bad_response: true,
  oversized: true,
  auth: false,
  billing: false,
  rate_limit: false,
  bad_request: false,
  context_length: false,
  aborted: false,
};

interface Breaker {
  failures: number;
  /** Undefined while closed. */
  openedAtMs: number | undefined;
  probing: boolean;
  /** Callers whose calls failed since the last success. */
  readonly failedCallers: Set<string>;
  cause: string | undefined;
}

const maxFailedCallers = 1000;
/** Retry time while another call tries. */
const probingRetryMs = 1000;

type Outcome = 'success' | 'failure' | 'neutral';

/** A breaker that opened after consecutive failures, or closed because its model answers again. */
export interface BreakerChange {
  readonly event: 'opened' | 'reset';
  readonly model: string;
  readonly failures: number;
}

const unchanged: readonly BreakerChange[] = [];

export interface Opened {
  readonly agentId: string;
  readonly model: string;
  readonly failures: number;
  readonly resetMs: number;
  readonly cause: string | undefined;
}

export function createCircuitBreakers(clock: Clock, onOpen: (opened: Opened) => void = () => {}): CircuitBreakers {
  /** Only models that failed recently: a success removes them. */
  const breakers = new Map<string, Breaker>();

  /** Returns 0 when it may be called. */
  function waitMs(breaker: Breaker | undefined, { caller, config }: Admitting): number {
    if (breaker?.openedAtMs === undefined) return 0;
    if (!breaker.failedCallers.has(caller) && breaker.failedCallers.size < maxFailedCallers) return 0;
    const leftMs = breaker.openedAtMs + config.resetMs - clock.monotonic();
    if (leftMs > 0) return Math.ceil(leftMs);
    return breaker.probing ? Math.min(config.resetMs, probingRetryMs) : 0;
  }

  function refusal(call: Admitting): { readonly retryAfterMs: number; readonly cause?: string } | undefined {
    let soonest: { readonly retryAfterMs: number; readonly cause?: string } | undefined;
    for (const model of call.models) {
      const breaker = breakers.get(keyOf(call.agentId, model));
      const retryAfterMs = waitMs(breaker, call);
      if (retryAfterMs === 0) return undefined;
      if (soonest === undefined || retryAfterMs < soonest.retryAfterMs)
        soonest = { retryAfterMs, ...(breaker?.cause !== undefined && { cause: breaker.cause }) };
    }
    return soonest;
  }

  function settle(call: Admitting, model: ModelInfo, isProbe: boolean, outcome: Outcome, error: ModelError | undefined): BreakerChange | undefined {
    const { agentId, caller, config } = call;
    const key = keyOf(agentId, model);
    const known = breakers.get(key);
    const name = `${model.provider}/${model.modelId}`;
    if (outcome === 'success') {
      breakers.delete(key);
      return known?.openedAtMs === undefined ? undefined : { event: 'reset', model: name, failures: known.failures };
    }
    if (outcome === 'neutral') {
      if (isProbe && known !== undefined) known.probing = false;
      return undefined;
    }
    const breaker = known ?? { failures: 0, openedAtMs: undefined, probing: false, failedCallers: new Set<string>(), cause: undefined };
    breakers.set(key, breaker);
    breaker.failures += 1;
    if (breaker.failedCallers.size < maxFailedCallers) breaker.failedCallers.add(caller);
    breaker.cause = error?.message ?? breaker.cause;
    const opens = breaker.openedAtMs === undefined && breaker.failures >= config.failures;
    // Calls that started before it opened and fail later do not keep it open longer.
    if (isProbe || opens) breaker.openedAtMs = clock.monotonic();
    if (isProbe) breaker.probing = false;
    if (!opens) return undefined;
    onOpen({ agentId, model: name, failures: breaker.failures, resetMs: config.resetMs, cause: breaker.cause });
    return { event: 'opened', model: name, failures: breaker.failures };
  }

  return {
    close(model) {
      for (const key of breakers.keys()) if (key.endsWith(` ${model}`)) breakers.delete(key);
    },
    admit(call) {
      const models = call.models.filter((model) => waitMs(breakers.get(keyOf(call.agentId, model)), call) === 0);
      if (models.length === 0) return refusal(call) ?? { retryAfterMs: 0 };
      const probes = new Set<ModelInfo>();
      for (const model of models) {
        const breaker = breakers.get(keyOf(call.agentId, model));
        if (breaker?.openedAtMs === undefined || breaker.probing) continue;
        breaker.probing = true;
        probes.add(model);
      }
      const last = new Map<ModelInfo, Attempt>();
      return {
        models,
        observe: (attempt) => void last.set(attempt.model, attempt),
        end(hung) {
          let changes: BreakerChange[] | undefined;
          for (const model of models) {
            const attempt = last.get(model);
            const isHung = hung && (last.size === 0 ? model === models[0] : attempt?.error?.kind === 'aborted');
            const change = settle(call, model, probes.has(model), isHung ? 'failure' : outcomeOf(attempt), attempt?.error);
            if (change !== undefined) (changes ??= []).push(change);
          }
          return changes ?? unchanged;
        },
      };
    },
  };
}

function outcomeOf(attempt: Attempt | undefined): Outcome {
  if (attempt === undefined) return 'neutral';
  if (attempt.outcome === 'ok') return 'success';
  const { error } = attempt;
  if (error === undefined || !isSick[error.kind]) return 'neutral';
  // A model that was still writing at the deadline is healthy: the answer was too long for its time.
  return error.kind === 'timeout' && error.partial !== undefined ? 'neutral' : 'failure';
}

const keyOf = (agentId: string, { provider, modelId }: ModelInfo) => `${agentId} ${provider}/${modelId}`;
