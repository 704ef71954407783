import { GatehouseError } from './errors.ts';

export interface RetryOptions {
  /** Attempts after the first. */
  readonly retries: number;
  /** Pause before the first repetition, in milliseconds; it doubles each time. */
  readonly initialDelayMs: number;
  /** Longest pause, also of one that the server asks for: a longer wish ends the attempts. */
  readonly maxDelayMs: number;
}

export const defaultRetry: RetryOptions = { retries: 2, initialDelayMs: 250, maxDelayMs: 10_000 };

const retryableCodes = new Set(['rate_limited', 'unavailable', 'timeout', 'connection_failed']);

/** Repeats `attempt` while it fails in a way that passes. Only for work that may be done twice. */
export async function withRetry<T>(attempt: () => Promise<T>, options: RetryOptions, signal?: AbortSignal): Promise<T> {
  for (let tried = 0; ; tried += 1) {
    try {
      return await attempt();
    } catch (error) {
      const delayMs = delayBeforeRetry(error, tried, options);
      if (delayMs === undefined) throw error;
      await sleep(delayMs, signal);
    }
  }
}

/** Undefined when it is not worth another attempt. */
export function delayBeforeRetry(error: unknown, tried: number, { retries, initialDelayMs, maxDelayMs }: RetryOptions): number | undefined {
  if (tried >= retries || !(error instanceof GatehouseError) || !retryableCodes.has(error.code)) return undefined;
  if (error.retryAfterMs !== undefined) return error.retryAfterMs <= maxDelayMs ? error.retryAfterMs : undefined;
  return backoffMs(tried, initialDelayMs, maxDelayMs);
}

/** Exponential, with the upper half random so that many clients do not return at once. */
export function backoffMs(tried: number, initialMs: number, maxMs: number): number {
  const full = Math.min(maxMs, initialMs * 2 ** tried);
  return full / 2 + (full / 2) * Math.random();
}

/** True for a failure that passes by itself, so that a stream which may always begin again does. */
export function isPassing(error: unknown): error is GatehouseError {
  return error instanceof GatehouseError && (retryableCodes.has(error.code) || error.code === 'internal' || error.code === 'client_timeout');
}

export interface ReconnectPause {
  /** Attempts in a row that failed before this one. */
  readonly failures: number;
  readonly initialMs: number;
  readonly maxMs: number;
}

/** Exponential with full jitter, so that the many who lost the same server spread out; never before the server wants it. */
export function reconnectDelayMs(error: GatehouseError, { failures, initialMs, maxMs }: ReconnectPause): number {
  return (error.retryAfterMs ?? 0) + Math.random() * Math.min(Math.max(initialMs, maxMs), initialMs * 2 ** Math.min(failures, 30));
}

/** Ends early by throwing the reason of the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
