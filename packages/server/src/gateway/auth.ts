import type { IncomingMessage } from 'node:http';
import { allows, type Route, scopeNames } from '@gatehouse/contract';
import type { TransportMeter } from '../features/operations/observability/api.ts';
import type { TokensApi } from '../features/access/tokens/api.ts';
import { AppError } from '../kernel/app-error.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import { RateLimiter } from '../kernel/limiter.ts';
import type { Log } from '../kernel/log.ts';
import type { ClientAddress } from './address.ts';
import type { HttpCall } from './http-call.ts';

const maxFailures = 10;
const maxAddresses = 10_000;

/** Returns the secret of `Authorization: Bearer <secret>`; the scheme is case-insensitive (RFC 9110 §11.1). */
export function bearerOf(incoming: IncomingMessage): string | undefined {
  const header = incoming.headers.authorization;
  if (header === undefined) return undefined;
  // Node keeps the first of several; a proxy in front may have used another one.
  if (isRepeated(incoming.rawHeaders, 'authorization')) throw new AppError('unauthenticated', 'Expected one Authorization header, received several');
  return /^bearer +(\S+) *$/i.exec(header)?.[1];
}

function isRepeated(rawHeaders: readonly string[], name: string): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index];
    if (header?.length === name.length && header.toLowerCase() === name) count += 1;
  }
  return count > 1;
}

/** Returns the secret of a request: the bearer token or, where the route accepts it, `x-api-key`. Undefined when both are sent and differ. */
export function secretOf(incoming: IncomingMessage, route: Pick<Route, 'apiKey'> | undefined): string | undefined {
  const key = route?.apiKey === true ? incoming.headers['x-api-key'] : undefined;
  if (typeof key !== 'string') return bearerOf(incoming);
  return incoming.headers.authorization === undefined || bearerOf(incoming) === key ? key : undefined;
}

export interface Authenticator {
  /**
   * Returns the identity behind a secret, undefined when there is none. A wrong secret throws `rate_limited` when its address presented
   * ten wrong ones within the last minute. A valid one is never refused because of others at the same address; secrets are
   * too long to be guessed at any speed.
   */
  authenticate(secret: string, address: ClientAddress): Identity | undefined;
}

export function createAuthenticator(deps: {
  readonly tokens: TokensApi;
  readonly clock: Clock;
  readonly bus: EventBus;
  readonly log: Log;
  readonly meter?: Pick<TransportMeter, 'wrongSecret'> | undefined;
}): Authenticator {
  const { tokens, clock, bus, log } = deps;
  const failures = new RateLimiter({ limit: maxFailures, windowMs: 60_000, slides: true, clock, maxKeys: maxAddresses });

  function recordFailure(address: ClientAddress): void {
    if (failures.take(address.key).remaining > 0) return;
    log.warn({ remoteAddress: address.text }, 'Too many failed logins; further wrong ones from this address are answered with 429 for a while');
    bus.emit('security:warn', {
      category: 'failed_logins',
      message: `${maxFailures} failed logins within a minute; further wrong ones from this address are answered with 429 for a while`,
      remoteAddress: address.text,
      timestamp: clock.now(),
    });
  }

  return {
    authenticate(secret, address) {
      const identity = tokens.authenticate(secret);
      if (identity !== undefined) return identity;
      deps.meter?.wrongSecret();
      const { allowed, resetMs } = failures.peek(address.key);
      if (!allowed) throw new AppError('rate_limited', 'Too many failed logins from this address', { retryAfterMs: resetMs });
      recordFailure(address);
      return undefined;
    },
  };
}

/** Denies by default: only a route that says so is open to callers without a token. */
export function authorize(call: HttpCall, route: Route): void {
  if (route.scope !== 'none') authorized(call.identity, call.incoming, route);
}

/** Returns the identity if it may use the route; fails otherwise. */
export function authorized(identity: Identity | undefined, incoming: IncomingMessage, route: Route): Identity {
  if (identity === undefined) throw new AppError('unauthenticated', whyUnknown(incoming, route));
  if (!allows(identity.scopes, route.scope))
    throw new AppError('insufficient_scope', `Insufficient scope: requires ${scopeNames(route.scope)}`, { required: route.scope });
  return identity;
}

function whyUnknown(incoming: IncomingMessage, route: Route): string {
  if (secretOf(incoming, route) !== undefined) return 'The bearer token is not valid';
  if (route.apiKey === true && incoming.headers['x-api-key'] !== undefined && incoming.headers.authorization !== undefined)
    return 'x-api-key and Authorization differ: send the token in one of them';
  return `A bearer token is required: Authorization: Bearer <token>${route.apiKey === true ? ', or x-api-key: <token>' : ''}`;
}
