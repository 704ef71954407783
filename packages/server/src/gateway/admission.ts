import type { IncomingMessage } from 'node:http';
import { allows, type Route, scopeWords } from '@gatehouse/contract';
import type { DoorTracer } from '../features/operations/observability/api.ts';
import { AppError } from '../kernel/app-error.ts';
import type { Identity } from '../kernel/call-context.ts';
import { secretOf } from './auth.ts';
import type { HttpCall } from './http-call.ts';
import type { Quota } from './limits.ts';

/**
 * What reads goes on under load, and so does JSON-RPC, which looks at each call. Webhooks are only written down, and some
 * senders never try again.
 */
export function startsWork(route: Route): boolean {
  return route.method === 'POST' && route.family !== 'rpc' && route.signed !== true;
}

/** Clients may send any word for a method; those that mean nothing here share a label. */
export function methodLabel(method: string | undefined): string {
  return method !== undefined && ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].includes(method) ? method : 'other';
}

/** What the span of a request tells of it. */
export function aboutTraced(call: HttpCall, route: Route): Parameters<DoorTracer['request']>[0] {
  const parent = call.incoming.headers['traceparent'];
  return {
    route: route.path,
    method: route.method,
    traceId: call.traceId,
    traceparent: typeof parent === 'string' ? parent : undefined,
    status: () => call.outgoing.statusCode,
  };
}

/** The refusal of a path that no route has, or not for this method. */
export function notFound(call: HttpCall, allow: readonly string[]): AppError {
  if (allow.length === 0) return new AppError('not_found', 'No such path');
  call.setHeader('allow', allow.join(', '));
  return new AppError('method_not_allowed', `This path takes ${allow.join(', ')}`);
}

/** Says in the answer's headers how much of a window is left. */
export function tellQuota(call: HttpCall, { limit, remaining, resetMs }: Quota, policy: string): void {
  call.setHeader('ratelimit-limit', String(limit));
  call.setHeader('ratelimit-remaining', String(remaining));
  call.setHeader('ratelimit-reset', String(Math.ceil(resetMs / 1000)));
  call.setHeader('ratelimit-policy', policy);
}

/** Deny by default: only a route that says so is open to callers without a token. */
export function authorize(call: HttpCall, route: Route): void {
  if (route.scope !== 'none') authorized(call.identity, call.incoming, route);
}

/** The identity, when it may use the route. */
export function authorized(identity: Identity | undefined, incoming: IncomingMessage, route: Route): Identity {
  if (identity === undefined) throw new AppError('unauthenticated', whyUnknown(incoming, route));
  if (!allows(identity.scopes, route.scope))
    throw new AppError('insufficient_scope', `Insufficient scope: requires ${scopeWords(route.scope)}`, { required: route.scope });
  return identity;
}

function whyUnknown(incoming: IncomingMessage, route: Route): string {
  if (secretOf(incoming, route) !== undefined) return 'The bearer token is not valid';
  if (route.apiKey === true && incoming.headers['x-api-key'] !== undefined && incoming.headers.authorization !== undefined)
    return 'x-api-key and Authorization differ: send the token in one of them';
  return `A bearer token is required: Authorization: Bearer <token>${route.apiKey === true ? ', or x-api-key: <token>' : ''}`;
}
