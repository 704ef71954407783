import type { FinishReason } from '@gatehouse/contract';
import { isMissingPart, missingPart } from '../kernel/missing-part.ts';
import { ModelError, type ModelErrorKind } from '../llm/model.ts';
import type { Refused } from './turn-budget.ts';
import type { FailureKind, TurnFailure } from './turn-failure.ts';
import { type TurnStop, TurnStoppedError } from './turn-stop.ts';

/** How a turn ends. */
export interface TurnEnd {
  readonly finishReason: FinishReason;
  readonly failure?: TurnFailure;
}

/** Ends that the loop itself decides. */
export const turnEnds = {
  stop: { finishReason: 'stop' },
  /** It answered, and calls that it started continue without it. */
  backgroundPending: { finishReason: 'background_pending' },
  /** The provider cut the answer off at its length: the partial text counts as an answer. */
  lengthCut: { finishReason: 'max_steps' },
  maxSteps: failed('max_steps', 'The turn used all its permitted steps'),
  contextExhausted: failed('context_exhausted', 'The conversation does not fit into the context of the model'),
  contextLoop: failed('context_loop', 'The model repeated the same tool calls without getting further'),
  outputStarved: failed('output_starved', 'The model ended its turn without an answer'),
  aborted: failed('aborted', 'The turn was aborted'),
  timeout: failed('timeout', 'The turn did not end within its wall clock'),
  denied: failed('error', 'The turn was stopped because its calls were denied repeatedly', 'denial_breaker'),
  filtered: failed('error', "The provider's content filter withheld the answer", 'content_filter'),
  internal: failed('error', 'Internal error'),
} as const satisfies Record<string, TurnEnd>;

/** Reports the actual and the permitted size, in the wording that clients search for. */
export function contextExhausted({ limit, input, answer }: { readonly limit: number; readonly input: number; readonly answer: number }): TurnEnd {
  const message = `The conversation does not fit into the context of the model: its maximum context length is ${limit} tokens, the request has ${input + answer} tokens (${input} of input, ${answer} for the answer)`;
  return failed('context_exhausted', message);
}

/** Ends the turn because a budget does not allow the call, or cut the answer short. */
export function budgetExceeded({ message, retryAfterMs, isRevoked }: Refused): TurnEnd {
  if (isRevoked === true) return failed('aborted', message, 'revoked');
  return withRetry(failed('budget_exceeded', message), retryAfterMs);
}

/** Every model of the turn failed repeatedly; `cause` is what the provider said last. */
export function circuitOpen(retryAfterMs: number, cause?: string): TurnEnd {
  const message = 'The model failed repeatedly and is paused for a while';
  return withRetry(transient('circuit_open', 'circuit_open', message, cause), retryAfterMs);
}

type OwnEnd = { readonly finishReason: FinishReason; readonly failure: TurnFailure };

function failed<Reason extends FinishReason & FailureKind>(finishReason: Reason, message: string): OwnEnd;
function failed(finishReason: FinishReason, message: string, kind: FailureKind): OwnEnd;
function failed(finishReason: FinishReason, message: string, kind = finishReason as FailureKind): OwnEnd {
  return { finishReason, failure: { kind, message, transient: false } };
}

function transient(finishReason: FinishReason, kind: FailureKind, message: string, cause: string | undefined): OwnEnd {
  return { finishReason, failure: { kind, message, transient: true, ...(cause !== undefined && { cause }) } };
}

function withRetry({ finishReason, failure }: OwnEnd, retryAfterMs: number | undefined): OwnEnd {
  if (retryAfterMs === undefined) return { finishReason, failure };
  const message = failure.transient ? `${failure.message}; retry in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s` : failure.message;
  return { finishReason, failure: { ...failure, message, retryAfterMs } };
}

interface Verdict {
  readonly finishReason: FinishReason;
  /** The provider is at fault, so work that outlives its request waits for it. A refusal of one request recurs whenever it is sent. */
  readonly transient: boolean;
  readonly message: string;
}

/** What each failed model call means for the turn. A provider's message may contain details that are not for clients, so these are our own. */
export const modelVerdicts: Readonly<Record<ModelErrorKind, Verdict>> = {
  auth: { finishReason: 'error', transient: true, message: 'The model provider refused the credentials of this server' },
  billing: { finishReason: 'error', transient: true, message: 'The account at the model provider does not allow the call' },
  rate_limit: { finishReason: 'provider_degraded', transient: true, message: 'The model provider accepts no more requests for now' },
  overloaded: { finishReason: 'provider_degraded', transient: true, message: 'The model provider is overloaded' },
  server: { finishReason: 'provider_degraded', transient: true, message: 'The model provider failed' },
  network: { finishReason: 'provider_degraded', transient: true, message: 'The model provider could not be reached, or the connection broke' },
  timeout: { finishReason: 'timeout', transient: true, message: 'The model did not answer in time' },
  bad_response: { finishReason: 'error', transient: true, message: 'The model provider sent an answer that could not be understood' },
  oversized: { finishReason: 'provider_degraded', transient: true, message: 'The model provider sent a longer answer than requested' },
  bad_request: { finishReason: 'error', transient: false, message: 'The model provider refused the request' },
  context_length: { finishReason: 'context_exhausted', transient: false, message: 'The conversation does not fit into the context of the model' },
  aborted: { finishReason: 'aborted', transient: false, message: 'The turn was aborted' },
};

/** How far a turn had come when its model call failed. */
export interface FailedCall {
  /** Why the turn itself was stopped, if it was. */
  readonly stopped: TurnStop['cause'];
  /** Nothing arrived from the provider, and no tool ran, since the turn started or was resumed: the provider hangs, not the turn. */
  readonly isSilent: boolean;
}

/** Returns the end of the turn after a failed model call. */
export function endOfFailedCall(error: unknown, { stopped, isSilent }: FailedCall): TurnEnd {
  // A provider that hangs until the time runs out counts as failed.
  if (stopped === 'timeout') return isSilent ? transient('timeout', 'timeout', turnEnds.timeout.failure.message, undefined) : turnEnds.timeout;
  if (stopped === 'denied') return turnEnds.denied;
  if (stopped === 'aborted' || error instanceof TurnStoppedError) return turnEnds.aborted;
  if (!(error instanceof ModelError)) return turnEnds.internal;
  if (isMissingPart(error)) return transient('provider_degraded', error.kind, missingPart, undefined);
  const { finishReason, message, ...verdict } = modelVerdicts[error.kind];
  // A failure that may be the account's fault waits as well: losing accepted work would be worse than failing late.
  const isTransient = verdict.transient || error.possibly !== undefined;
  const cause = toPlainText(error.message);
  // Often the caller's own parameters are at fault, and only the provider knows which.
  const text = error.kind === 'bad_request' ? `${message}: ${cause}` : message;
  return withRetry({ finishReason, failure: { kind: error.kind, message: text, transient: isTransient, cause } }, error.retryAfterMs);
}

function toPlainText(text: string): string {
  return text
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
    .slice(0, 500);
}
