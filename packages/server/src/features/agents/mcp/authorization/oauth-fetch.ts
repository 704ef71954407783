import type { FetchLike } from '@modelcontextprotocol/client';
import { AppError } from '../../../../kernel/app-error.ts';
import type { DialRules } from '../../../../kernel/checked-dial.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { createEgress } from '../../../../kernel/egress.ts';

export interface OAuthFetchOptions {
  readonly clock: Clock;
  readonly dial: Pick<DialRules, 'resolve' | 'allowAddresses'> | undefined;
  /** Whether the operator allowed private addresses for this server. */
  readonly allowPrivate: boolean;
  /** Whether any port is allowed. */
  readonly anyPort: boolean;
  readonly signal: AbortSignal;
}

const maxBytes = 256 * 1024;
const timeoutMs = 15_000;
const withoutBody = new Set([204, 205, 304]);

/** Returns `fetch` for the requests to authorization servers: an MCP server chooses their addresses, so each is checked. */
export function createOAuthFetch({ clock, dial, allowPrivate, anyPort, signal }: OAuthFetchOptions): FetchLike {
  return async (target, init = {}) => {
    const url = new URL(target);
    const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
    const names = [url.hostname, url.hostname.replaceAll(/[[\]]/g, '')];
    const egress = createEgress({
      clock,
      ...dial,
      ...(anyPort && { ports: [port] }),
      ...(allowPrivate && { allowHosts: names.map((name) => `${name}:${port}`) }),
    });
    const method = init.method ?? 'GET';
    if (method !== 'GET' && method !== 'POST') throw new AppError('denied', `Method ${method} is not allowed`);
    const body = init.body instanceof URLSearchParams ? init.body.toString() : init.body;
    if (body != null && typeof body !== 'string') throw new TypeError('expected a text as body');
    const answer = await egress.request({
      url: url.href,
      method,
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(body != null && { body }),
      maxBytes,
      timeoutMs,
      signal,
      follow(to) {
        if (method !== 'GET' || to.origin !== url.origin) throw new AppError('denied', `${url.host} redirects to ${to.host}, which is not followed`);
      },
    });
    if (answer.truncated) throw new AppError('unavailable', `The answer of ${url.host} is longer than ${maxBytes} bytes`);
    return new Response(withoutBody.has(answer.status) ? null : new Uint8Array(answer.body), { status: answer.status, headers: answer.headers });
  };
}
