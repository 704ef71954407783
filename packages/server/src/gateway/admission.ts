import type { IncomingMessage } from 'node:http';
import { allows, type Route, scopeNames } from '@gatehouse/contract';
import type { TransportTracer } from '../features/operations/observability/api.ts';
import { AppError } from '../kernel/app-error.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Quota } from '../kernel/limiter.ts';
import { secretOf } from './auth.ts';
import type { HttpCall } from './http-call.ts';

/**
 * Whether a route starts work that is refused under load. Reads continue, and so does JSON-RPC, which checks each call.
 * Webhooks are only stored, and some senders never try again.
 */
export function startsWork(route: Route): boolean {
  return route.method === 'POST' && route.family !== 'rpc' && route.signed !== true;
}

/** Clients may send any word as a method; unknown ones share a label. */
export function methodLabel(method: string | undefined): string {
  return method !== undefined && ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].includes(method) ? method : 'other';
}

/** Returns the attributes of a request's span. */
export function aboutTraced(call: HttpCall, route: Route): Parameters<TransportTracer['request']>[0] {
  const parent = call.incoming.headers['traceparent'];
  return {
    route: route.path,
    method: route.method,
    traceId: call.traceId,
    traceparent: typeof parent === 'string' ? parent : undefined,
    status: () => call.outgoing.statusCode,
  };
}

/** Returns the error for a path without a route, or without one for this method. */
export function notFound(call: HttpCall, allow: readonly string[]): AppError {
  if (allow.length === 0) return new AppError('not_found', 'No such path');
  call.setHeader('allow', allow.join(', '));
  return new AppError('method_not_allowed', `This path takes ${allow.join(', ')}`);
}

/** Reports in the response headers how much of a window is left. */
export function setQuotaHeaders(call: HttpCall, { limit, remaining, resetMs }: Quota, policy: string): void {
  call.setHeader('ratelimit-limit', String(limit));
  call.setHeader('ratelimit-remaining', String(remaining));
  call.setHeader('ratelimit-reset', String(Math.ceil(resetMs / 1000)));
  call.setHeader('ratelimit-policy', policy);
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
