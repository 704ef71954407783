import { Agent } from '../kernel/undici.ts';
import type { WireClock } from './port.ts';

/** A request that got no complete answer. */
export class RequestFailed extends Error {
  /** Whether the request may have reached the platform: false only when no connection was made. */
  readonly maybeSent: boolean;

  constructor(text: string, maybeSent: boolean, cause: unknown) {
    super(text, { cause });
    this.name = 'RequestFailed';
    this.maybeSent = maybeSent;
  }
}

export interface FetchOptions {
  readonly clock: WireClock;
  /** Time for the complete answer. */
  readonly timeoutMs: number;
  /** Largest answer. */
  readonly maxBytes: number;
}

/** Failures before a byte of the request is written. */
const before = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/** Without time limits: while a poll waits for messages, those of the library would wake the process twice a second. Ours end each request. */
const untimed: object = { dispatcher: new Agent({ headersTimeout: 0, bodyTimeout: 0 }) };

/**
 * Returns a `fetch` that reads every answer to its end, with a limit of size and time, follows no redirect, and rejects with `RequestFailed`. Its
 * errors never contain the address, which has secrets on some platforms.
 */
export function createFetch({ clock, timeoutMs, maxBytes }: FetchOptions): typeof fetch {
  return async (input, init = {}) => {
    const stopping = new AbortController();
    const signal = init.signal == null ? stopping.signal : AbortSignal.any([init.signal, stopping.signal]);
    const cancel = clock.after(timeoutMs, () => stopping.abort());
    let answered = false;
    try {
      const response = await fetch(input, { ...init, ...untimed, signal, redirect: 'manual' });
      answered = true;
      const body = await readAll(response, maxBytes);
      return new Response(isEmpty(response.status) ? null : body, {
        status: response.status,
        statusText: response.statusText,
        headers: response.headers,
      });
    } catch (error) {
      if (stopping.signal.aborted) throw new RequestFailed(`No complete answer within ${timeoutMs / 1_000} s`, true, undefined);
      const code = codeOf(error);
      if (isBadPort(error)) throw new RequestFailed(`Port ${portOf(input)} cannot be used: it belongs to another protocol`, false, error);
      throw new RequestFailed(
        code === undefined ? 'The connection ended before the answer was complete' : `The request failed: ${code}`,
        answered || !before.has(code ?? ''),
        error,
      );
    } finally {
      cancel();
    }
  };
}

async function readAll(response: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.byteLength;
    if (size > maxBytes) throw new Error(`The answer is larger than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Statuses whose answer has no body. */
const isEmpty = (status: number): boolean => status === 204 || status === 205 || status === 304;

/** Requests to some ports are refused before they connect, as the specification of fetch demands. */
const isBadPort = (error: unknown): boolean => error instanceof Error && error.cause instanceof Error && error.cause.message === 'bad port';
const portOf = (input: Parameters<typeof fetch>[0]): string => new URL(input instanceof Request ? input.url : input).port;

function codeOf(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth += 1)
    if ('code' in at && typeof at.code === 'string') return at.code;
  return undefined;
}
