import type { Live } from '../kernel/config/live.ts';
import { routes } from '@gatehouse/contract';
import type { RequestLimit } from '../features/access/tokens/api.ts';
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
  /** Limits of a token and of its person, which its requests count for as well; none when absent. */
  readonly requestLimits?: ((tokenId: string) => readonly RequestLimit[]) | undefined;
}

/** Windows of tokens and persons that are kept: as many as have limits, of which few installations have thousands. */
const maxOwners = 20_000;

/** Counts requests by caller: by token when it is valid, so that random tokens create no keys, by address otherwise. */
export class RequestLimits {
  /** Requests and calls of all kinds but signed webhooks. */
  readonly common: RateLimiter;
  /** Webhooks come in bursts, and some senders never repeat one: a signed one has a separate window (see `createHookRoutes`). */
  readonly #hooks: RateLimiter;

  readonly #deps: Pick<RequestLimitsDeps, 'clock' | 'requestLimits'>;
  readonly #owners = new Map<string, { readonly limiter: RateLimiter; limit: RequestLimit['limit'] }>();

  constructor({ config, webhooks, clock, onRefused, requestLimits }: RequestLimitsDeps) {
    this.#deps = { clock, requestLimits };
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
    const refusal = quota.allowed
      ? this.refusalOf(call.identity?.tokenId)
      : new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: quota.resetMs });
    if (refusal === undefined) return;
    // The id to echo is in the body, which is read only for callers with a token.
    if (call.route !== routes.rpc.path || call.identity === undefined) throw refusal;
    call.refusal = refusal;
  }

  /** Counts a WebSocket handshake. */
  admitSocket(identity: Identity | undefined, address: ClientAddress): void {
    this.#take(keyOf(identity, address));
    this.#refuse(identity?.tokenId);
  }

  /** Counts a message of a WebSocket that is a request. */
  admitMessage({ tokenId }: Identity): void {
    this.#take(`token:${tokenId}`);
    this.#refuse(tokenId);
  }

  #refuse(tokenId: string | undefined): void {
    const refusal = this.refusalOf(tokenId);
    if (refusal !== undefined) throw refusal;
  }

  /** Counts events for the limits of a token and of its person; returns a refusal that names the limit. */
  refusalOf(tokenId: string | undefined, cost = 1): AppError | undefined {
    const limits = tokenId === undefined ? undefined : this.#deps.requestLimits?.(tokenId);
    for (const { name, limit } of limits ?? []) {
      const { allowed, resetMs } = this.#ownerLimiter(name, limit).take(name, cost);
      if (allowed) continue;
      const message = `Rate limit exceeded: ${name} allows ${limit.maxRequests} requests in ${limit.windowMs / 1000} s; try again in ${Math.ceil(resetMs / 1000)} s`;
      return new AppError('rate_limited', message, { retryAfterMs: resetMs });
    }
    return undefined;
  }

  #ownerLimiter(name: string, limit: RequestLimit['limit']): RateLimiter {
    let found = this.#owners.get(name);
    if (found === undefined) {
      if (this.#owners.size >= maxOwners) this.#owners.clear();
      const made: { readonly limiter: RateLimiter; limit: RequestLimit['limit'] } = {
        limit,
        limiter: new RateLimiter({ limit: () => made.limit.maxRequests, windowMs: () => made.limit.windowMs, clock: this.#deps.clock }),
      };
      this.#owners.set(name, made);
      found = made;
    }
    found.limit = limit;
    return found.limiter;
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
