import type { FinishReason } from '@gatehouse/contract';
import { ModelError, type ModelErrorKind } from '../llm/model.ts';
import type { TurnHealth } from './circuit-breaker.ts';
import type { Refused } from './turn-budget.ts';
import { type TurnStop, TurnStoppedError } from './turn-stop.ts';
import type { TurnResult } from './turn.ts';

/** How a turn ends. */
export interface TurnEnd {
  readonly finishReason: FinishReason;
  readonly failure?: NonNullable<TurnResult['failure']>;
  readonly health: TurnHealth;
}

/** Ends that the loop decides on itself. */
export const turnEnds = {
  stop: { finishReason: 'stop', health: 'success' },
  /** It answered, and calls that it began go on without it. */
  backgroundPending: { finishReason: 'background_pending', health: 'success' },
  /** The provider cut the answer off at its length: what there is counts as an answer. */
  lengthCut: { finishReason: 'max_steps', health: 'success' },
  maxSteps: failed('max_steps', 'success', 'The turn used all the steps that it may take'),
  contextExhausted: failed('context_exhausted', 'neutral', 'The conversation does not fit into the context of the model'),
  contextLoop: failed('context_loop', 'neutral', 'The model repeated the same tool calls without getting further'),
  outputStarved: failed('output_starved', 'neutral', 'The model ended its turn without an answer'),
  aborted: failed('aborted', 'neutral', 'The turn was aborted'),
  timeout: failed('timeout', 'neutral', 'The turn did not end within its wall clock'),
  denied: {
    finishReason: 'error',
    failure: { kind: 'denial_breaker', message: 'The turn was ended because its calls were denied again and again' },
    health: 'neutral',
  },
  filtered: {
    finishReason: 'error',
    failure: { kind: 'content_filter', message: "The provider's content filter withheld the answer" },
    health: 'neutral',
  },
  internal: { finishReason: 'error', failure: { kind: 'error', message: 'Internal error' }, health: 'neutral' },
} as const satisfies Record<string, TurnEnd>;

/** A budget has no room for the call, or cut the answer short. */
export function budgetExceeded({ message, retryAfterMs, isRevoked }: Refused): TurnEnd {
  if (isRevoked === true) return { finishReason: 'aborted', failure: { kind: 'revoked', message }, health: 'neutral' };
  const end = failed('budget_exceeded', 'neutral', message);
  return retryAfterMs === undefined ? end : { ...end, failure: { kind: 'budget_exceeded', message, retryAfterMs } };
}

export function circuitOpen(retryAfterMs: number): TurnEnd {
  return {
    finishReason: 'circuit_open',
    failure: { kind: 'circuit_open', message: 'Turns of this agent failed repeatedly; it is left alone for a while', retryAfterMs },
    health: 'neutral',
  };
}

function failed(finishReason: FinishReason, health: TurnHealth, message: string): TurnEnd {
  return { finishReason, failure: { kind: finishReason, message }, health };
}

/** What each failed model call means for the turn. Words of a provider may hold what is not the client's business, so these are ours. */
const byKind: Readonly<Record<ModelErrorKind, { readonly finishReason: FinishReason; readonly health: TurnHealth; readonly message: string }>> = {
  auth: { finishReason: 'error', health: 'failure', message: 'The model provider refused the credentials of this server' },
  billing: { finishReason: 'error', health: 'failure', message: 'The account at the model provider does not allow the call' },
  rate_limit: { finishReason: 'provider_degraded', health: 'failure', message: 'The model provider takes no more requests for now' },
  overloaded: { finishReason: 'provider_degraded', health: 'failure', message: 'The model provider is overloaded' },
  server: { finishReason: 'provider_degraded', health: 'failure', message: 'The model provider failed' },
  network: { finishReason: 'provider_degraded', health: 'failure', message: 'The model provider could not be reached, or the connection broke' },
  timeout: { finishReason: 'timeout', health: 'failure', message: 'The model did not answer in time' },
  bad_response: { finishReason: 'error', health: 'failure', message: 'The model provider sent an answer that could not be understood' },
  bad_request: { finishReason: 'error', health: 'neutral', message: 'The model provider refused the request' },
  context_length: { finishReason: 'context_exhausted', health: 'neutral', message: 'The conversation does not fit into the context of the model' },
  aborted: { finishReason: 'aborted', health: 'neutral', message: 'The turn was aborted' },
};

/** The end that a failed model call puts to the turn; `stopped` is why the turn itself was stopped, if it was. */
export function endOfFailedCall(error: unknown, stopped: TurnStop['cause']): TurnEnd {
  // A provider that hangs until the wall clock runs out is as sick as one that fails.
  if (stopped === 'timeout') return { ...turnEnds.timeout, health: 'failure' };
  if (stopped === 'denied') return turnEnds.denied;
  if (stopped === 'aborted' || error instanceof TurnStoppedError) return turnEnds.aborted;
  if (!(error instanceof ModelError)) return turnEnds.internal;
  const { finishReason, health, message } = byKind[error.kind];
  // The caller's own parameters are at fault as often as not, and only the provider knows which.
  const words = error.kind === 'bad_request' ? `${message}: ${plainWords(error.message)}` : message;
  return {
    finishReason,
    health,
    failure: { kind: error.kind, message: words, ...(error.retryAfterMs !== undefined && { retryAfterMs: error.retryAfterMs }) },
  };
}

function plainWords(text: string): string {
  return text
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
    .slice(0, 500);
}
