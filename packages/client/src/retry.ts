import { GatehouseError } from './errors.ts';

export interface RetryOptions {
  /** Number of retries after the first attempt. */
  readonly retries: number;
  /** Delay before the first retry in milliseconds; it doubles each time. */
  readonly initialDelayMs: number;
  /** Maximum delay; a longer delay requested by the server ends the retries. */
  readonly maxDelayMs: number;
}

export const defaultRetry: RetryOptions = { retries: 2, initialDelayMs: 250, maxDelayMs: 10_000 };

const retryableCodes = new Set(['rate_limited', 'unavailable', 'timeout', 'connection_failed']);

/** Retries `attempt` on transient failures. Only for idempotent work. */
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

/** Returns the delay before the next attempt; undefined when there should be none. */
export function delayBeforeRetry(error: unknown, tried: number, { retries, initialDelayMs, maxDelayMs }: RetryOptions): number | undefined {
  if (tried >= retries || !(error instanceof GatehouseError) || !retryableCodes.has(error.code)) return undefined;
  if (error.retryAfterMs !== undefined) return error.retryAfterMs <= maxDelayMs ? error.retryAfterMs : undefined;
  return backoffMs(tried, initialDelayMs, maxDelayMs);
}

/** Exponential backoff with random jitter in the upper half, so that many clients do not return at once. */
export function backoffMs(tried: number, initialMs: number, maxMs: number): number {
  const full = Math.min(maxMs, initialMs * 2 ** tried);
  return full / 2 + (full / 2) * Math.random();
}

/** True for a transient failure, after which a stream may reconnect. */
export function isPassing(error: unknown): error is GatehouseError {
  return error instanceof GatehouseError && (retryableCodes.has(error.code) || error.code === 'internal' || error.code === 'client_timeout');
}

export interface ReconnectPause {
  /** Number of consecutive failed attempts. */
  readonly failures: number;
  readonly initialMs: number;
  readonly maxMs: number;
}

/** Exponential backoff with full jitter, so that clients of a restarted server spread out; respects the server's minimum. */
export function reconnectDelayMs(error: GatehouseError, { failures, initialMs, maxMs }: ReconnectPause): number {
  return (error.retryAfterMs ?? 0) + Math.random() * Math.min(Math.max(initialMs, maxMs), initialMs * 2 ** Math.min(failures, 30));
}

/** Sleeps; throws the reason of the signal when aborted. */
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
