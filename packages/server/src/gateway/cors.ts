import type { HttpCall } from './http-call.ts';

/** Headers in addition to those that every page may read. */
const exposed = [
  'x-request-id',
  'retry-after',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'ratelimit-policy',
  'www-authenticate',
  'x-gatehouse-error',
  'x-gatehouse-finish-reason',
  'x-gatehouse-left-out',
  'etag',
  'accept-ranges',
  'content-range',
  'content-disposition',
  'location',
  'mcp-session-id',
].join(', ');

/** Lets a page of `origin`, which was already checked, read the response. */
export function allowOrigin(call: HttpCall, origin: string): void {
  call.setHeader('access-control-allow-origin', origin);
  call.setHeader('access-control-expose-headers', exposed);
}

export function isPreflight(call: HttpCall): boolean {
  return call.incoming.method === 'OPTIONS' && call.incoming.headers['access-control-request-method'] !== undefined;
}

/** Accepts whatever headers the page wants to send: the origin was allowed, and no cookie is ever read. */
export function answerPreflight(call: HttpCall, methods: readonly string[]): void {
  const wanted = call.incoming.headers['access-control-request-headers'];
  const named = wanted !== undefined && wanted.length <= 2_048 && /^[\w-]+(\s*,\s*[\w-]+)*$/.test(wanted) ? wanted : 'authorization, content-type';
  call.setHeader('access-control-allow-methods', methods.join(', '));
  call.setHeader('access-control-allow-headers', named);
  call.setHeader('access-control-max-age', '600');
  call.vary('access-control-request-headers');
  call.writeHead(204);
  call.outgoing.end();
}
