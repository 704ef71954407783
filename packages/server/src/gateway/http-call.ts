import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RouteFamily } from '@gatehouse/contract';
import { AppError } from '../kernel/app-error.ts';
import type { CallContext, Identity } from '../kernel/call-context.ts';
import { familyOf } from './error-body.ts';

const acceptableRequestId = /^[A-Za-z0-9._-]{1,128}$/;
const traceparent = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Ids of one call: the client's own where they are well formed (`x-request-id`, W3C `traceparent`), random otherwise. */
export function callIds(incoming: IncomingMessage): { readonly requestId: string; readonly traceId: string } {
  const random = randomUUID().replaceAll('-', '');
  const given = incoming.headers['x-request-id'];
  const parent = incoming.headers['traceparent'];
  return {
    requestId: typeof given === 'string' && acceptableRequestId.test(given) ? given : `req_${random}`,
    traceId: (typeof parent === 'string' ? traceparent.exec(parent)?.[1] : undefined) ?? random,
  };
}

/** The path as it was sent, undecoded, and the text after the first `?`. */
export function splitTarget(target: string): { readonly path: string; readonly search: string } {
  const at = target.indexOf('?');
  return at === -1 ? { path: target, search: '' } : { path: target.slice(0, at), search: target.slice(at + 1) };
}

/** One HTTP request and the node response that answers it; handlers write to `outgoing` themselves. */
export class HttpCall {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly requestId: string;
  readonly traceId: string;
  /** The client's address, IPv4-mapped forms folded. */
  readonly remoteAddress: string;
  readonly path: string;
  readonly search: string;
  readonly family: RouteFamily;
  /** Values of the `:name` and `*name` parts of the route, undecoded. */
  params: Readonly<Record<string, string>> = {};
  identity: Identity | undefined;
  /** True when the client waits for `100 Continue` before it sends the body. */
  expectsContinue = false;
  /** True from when a handler began to read the body. */
  readsBody = false;
  /** True when the body was refused while the client may still be sending it. */
  discardsBody = false;
  /** True for answers that are event streams: they end when their token does. */
  streams = false;
  /** When an answer was first seen complete but not yet taken by the client. */
  endedAtMs: number | undefined;
  #gone: AbortController | undefined;
  readonly #headers: string[] = [];

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, remoteAddress: string) {
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.remoteAddress = remoteAddress;
    const ids = callIds(incoming);
    this.requestId = ids.requestId;
    this.traceId = ids.traceId;
    const { path, search } = splitTarget(incoming.url ?? '/');
    this.path = path;
    this.search = search;
    this.family = familyOf(path);
  }

  /** Sets a header of the answer, by its lower-case name. Kept as the flat list that node writes without a second look: its own setter costs a map and two checks each. */
  setHeader(name: string, value: string): void {
    const headers = this.#headers;
    for (let at = 0; at < headers.length; at += 2)
      if (headers[at] === name) {
        headers[at + 1] = value;
        return;
      }
    headers.push(name, value);
  }

  /** Writes the status line with the headers that were set. */
  writeHead(status: number): void {
    this.outgoing.writeHead(status, this.#headers);
  }

  /** Aborted when the client is gone before it was answered in full, or when the server ends the call. */
  get signal(): AbortSignal {
    if (this.#gone === undefined) {
      const gone = new AbortController();
      this.#gone = gone;
      const { outgoing } = this;
      if (outgoing.destroyed) gone.abort();
      else outgoing.once('close', () => void (outgoing.writableFinished || gone.abort()));
    }
    return this.#gone.signal;
  }

  /** Ends the call from the server's side: what works for it is aborted and the socket is cut. */
  cut(): void {
    this.#gone?.abort();
    this.outgoing.destroy();
  }

  /** What the features see of this call. */
  context(): CallContext {
    if (this.identity === undefined) throw new AppError('unauthenticated', 'A bearer token is required');
    return {
      identity: this.identity,
      traceId: this.traceId,
      requestId: this.requestId,
      signal: this.signal,
      transport: 'http',
      remoteAddress: this.remoteAddress,
    };
  }
}
