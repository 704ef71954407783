import type { Live } from '../kernel/config/live.ts';
import { routes } from '@gatehouse/contract';
import type { WebhooksApi } from '../features/unattended/webhooks/api.ts';
import { AppError } from '../kernel/app-error.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import { type Quota, RateLimiter } from '../kernel/limiter.ts';
import type { ClientAddress } from './address.ts';
import type { GatewayConfig } from './config.ts';
import type { HttpCall } from './http-call.ts';

export interface RequestLimitsDeps {
  readonly config: Live<Pick<GatewayConfig, 'rateLimit'>>;
  readonly webhooks: Pick<WebhooksApi, 'rateLimit'>;
  readonly clock: Clock;
  readonly onRefused: (() => void) | undefined;
}

/** Counts requests by caller: by token when it is valid, so that random tokens create no keys, by address otherwise. */
export class RequestLimits {
  /** Requests and calls of all kinds but signed webhooks. */
  readonly common: RateLimiter;
  /** Webhooks come in bursts, and some senders never repeat one: a signed one has a separate window (see `createHookRoutes`). */
  readonly #hooks: RateLimiter;

  constructor({ config, webhooks, clock, onRefused }: RequestLimitsDeps) {
    const windowMs = () => config.current.rateLimit.windowMs;
    const maxRequests = () => config.current.rateLimit.maxRequests;
    this.common = new RateLimiter({ windowMs, limit: maxRequests, clock, onRefused });
    this.#hooks = new RateLimiter({
      windowMs: () => webhooks.rateLimit().windowMs ?? windowMs(),
      limit: () => webhooks.rateLimit().maxRequests ?? 10 * maxRequests(),
      clock,
      onRefused,
    });
  }

  /** Counts a request and reports its quota. A refused one fails, or answers later when the route must echo ids of its body. */
  admit(call: HttpCall, address: ClientAddress, isSigned: boolean): void {
    const key = keyOf(call.identity, address);
    if (isSigned) call.charge = () => void this.common.take(key);
    const common = isSigned ? this.common.peek(key) : this.common.take(key);
    const [{ policy }, quota] = isSigned && common.allowed ? [this.#hooks, this.#hooks.take(key)] : [this.common, common];
    setQuotaHeaders(call, quota, policy);
    if (quota.allowed) return;
    const refusal = new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: quota.resetMs });
    // The id to echo is in the body, which is read only for callers with a token.
    if (call.route !== routes.rpc.path || call.identity === undefined) throw refusal;
    call.refusal = refusal;
  }

  /** Counts a WebSocket handshake. */
  admitSocket(identity: Identity | undefined, address: ClientAddress): void {
    this.#take(keyOf(identity, address));
  }

  /** Counts a message of a WebSocket that is a request. */
  admitMessage({ tokenId }: Identity): void {
    this.#take(`token:${tokenId}`);
  }

  #take(key: string): void {
    const { allowed, resetMs } = this.common.take(key);
    if (!allowed) throw new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: resetMs });
  }
}

function keyOf(identity: Identity | undefined, address: ClientAddress): string {
  return identity === undefined ? `address:${address.key}` : `token:${identity.tokenId}`;
}

/** Reports in the response headers how much of a window is left. */
export function setQuotaHeaders(call: HttpCall, { limit, remaining, resetMs }: Quota, policy: string): void {
  call.setHeader('ratelimit-limit', String(limit));
  call.setHeader('ratelimit-remaining', String(remaining));
  call.setHeader('ratelimit-reset', String(Math.ceil(resetMs / 1000)));
  call.setHeader('ratelimit-policy', policy);
}
