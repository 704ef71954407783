import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RouteFamily } from '@gatehouse/contract';
import { AppError } from '../kernel/app-error.ts';
import type { CallContext, Identity } from '../kernel/call-context.ts';
import { newTraceId } from '../kernel/ids.ts';
import { familyOf } from './error-body.ts';

const acceptableRequestId = /^[A-Za-z0-9._-]{1,128}$/;
const traceparent = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Returns the ids of one call: the client's own when they are well formed (`x-request-id`, W3C `traceparent`), new ones otherwise. */
export function callIds(incoming: IncomingMessage): { readonly requestId: string; readonly traceId: string } {
  const own = newTraceId();
  const given = incoming.headers['x-request-id'];
  const parent = incoming.headers['traceparent'];
  return {
    requestId: typeof given === 'string' && acceptableRequestId.test(given) ? given : `req_${own}`,
    traceId: (typeof parent === 'string' ? traceparent.exec(parent)?.[1] : undefined) ?? own,
  };
}

const absoluteForm = /^https?:\/\/([^/?]*)(.*)$/is;

/** Returns the path as sent, undecoded, and the text after the first `?`; of a target in absolute form, what follows its host (RFC 9112 §3.2.2). */
export function splitTarget(target: string): { readonly path: string; readonly search: string } {
  const local = target.startsWith('/') ? target : (absoluteForm.exec(target)?.[2] ?? target);
  const at = local.indexOf('?');
  const path = at === -1 ? local : local.slice(0, at);
  return { path: path === '' ? '/' : path, search: at === -1 ? '' : local.slice(at + 1) };
}

/** Returns the host and port that a request means: a target in absolute form overrides its `Host` (RFC 9112 §3.2.2). */
export function authorityOf({ url = '', headers }: IncomingMessage): string {
  return (url.startsWith('/') ? undefined : absoluteForm.exec(url)?.[1]) ?? headers.host ?? '';
}

/** How long a reader may leave the final event of its stream unread. */
const finalEventMs = 1_000;

const handedOver = new WeakSet<IncomingMessage>();

/** True for a request whose socket node releases because the call asked for it (`handOver`). */
export function isHandedOver(incoming: IncomingMessage): boolean {
  return handedOver.has(incoming);
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
  /** True when the server that took the request listens for upgrades. */
  mayHandOver = false;
  /** True once a handler has started to read the body. */
  readsBody = false;
  /** True when the body was refused while the client may still be sending it. */
  discardsBody = false;
  /** True for responses that are event streams: they end when their token does. */
  streams = false;
  /** True for streams that last only as long as the work they report: a merely rotated token doesn't cut them. */
  endsItself = false;
  /** Set by an event stream: ends it with a failure as its final event. */
  endStream: ((error: AppError) => void) | undefined;
  /** Set when the rate limit refuses the call; the route answers with it once it knows the ids to echo. */
  refusal: AppError | undefined;
  /** Counts a call against the common rate limit that it was exempt from; set for webhook routes. */
  charge: (() => void) | undefined;
  /** Overrides the catalogue's status, for failures of the transfer itself. */
  failureStatus: number | undefined;
  /** Challenge of a 401. */
  challenge: 'Bearer' | 'Signature' = 'Bearer';
  /** Declared path of the answering route; undefined where there is none. */
  route: string | undefined;
  /** When an answer was first seen complete but not yet taken by the client. */
  endedAtMs: number | undefined;
  #gone: AbortController | undefined;
  #headers: string[] = [];

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

  /** Sets a response header by its lower-case name. Kept as a flat list that node writes directly: its setter costs a map and two checks each. */
  setHeader(name: string, value: string): void {
    const headers = this.#headers;
    for (let at = 0; at < headers.length; at += 2)
      if (headers[at] === name) {
        headers[at + 1] = value;
        return;
      }
    headers.push(name, value);
  }

  /**
   * Declares that nothing more will be read from this connection, so that a server with an upgrade listener releases its
   * socket and frees its parser: a third of the memory of a stream that is open for days. `upgrade` is the flag
   * that node's own server acts on; where it does not, the stream still works.
   */
  handOver(): void {
    const { headers } = this.incoming;
    if (!this.mayHandOver || this.outgoing.socket === null || 'content-length' in headers || 'transfer-encoding' in headers) return;
    handedOver.add(this.incoming);
    Object.assign(this.incoming, { upgrade: true });
  }

  /** Adds a request header that the response depends on. */
  vary(name: string): void {
    const at = this.#headers.indexOf('vary');
    this.setHeader('vary', at === -1 ? name : `${this.#headers[at + 1]}, ${name}`);
  }

  /** Writes the status line with the headers that were set. */
  writeHead(status: number): void {
    this.outgoing.writeHead(status, this.#headers);
    // A stream may live for days after this.
    this.#headers = [];
  }

  /** Aborted when the client disconnects before it was answered in full, or when the server ends the call. */
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

  /** Aborts the work of the call, so that it fails with `reason`; the response is still sent. */
  abort(reason: AppError): void {
    void this.signal;
    this.#gone?.abort(reason);
  }

  /** Why the server ended the call, such as that its token was revoked while its body arrived; undefined when it did not. */
  get endedBy(): AppError | undefined {
    const reason: unknown = this.#gone?.signal.reason;
    return reason instanceof AppError ? reason : undefined;
  }

  /** Ends the call from the server's side: aborts its work and cuts the socket. */
  cut(): void {
    this.#gone?.abort();
    this.outgoing.destroy();
  }

  /** Ends an event stream from the server's side: its reader gets the reason, and a moment to read it before the socket is cut. */
  cutStream(error: AppError): void {
    const { outgoing } = this;
    if (!outgoing.headersSent || this.endStream === undefined) return this.cut();
    this.endStream(error);
    this.#gone?.abort();
    const timer = setTimeout(() => outgoing.destroy(), finalEventMs);
    timer.unref();
    outgoing.once('close', () => clearTimeout(timer));
    outgoing.once('finish', () => outgoing.destroy());
  }

  /** Returns the features' view of this call. */
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
