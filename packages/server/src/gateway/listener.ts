import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerOptions, STATUS_CODES } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError } from '../kernel/app-error.ts';
import { errorBody, familyOf, retryAfterSeconds } from './error-body.ts';
import { splitTarget } from './http-call.ts';
import type { TlsFiles } from './tls.ts';

/** How long a client may take to send its first byte and to complete the TLS handshake. */
const handshakeMs = 5_000;

export interface ListenerOptions {
  readonly maxConnections: number;
  readonly isSocketPath: (path: string) => boolean;
  /** HTTPS instead of HTTP. */
  readonly tls?: { readonly files: TlsFiles; readonly requireClientCert: boolean } | undefined;
}

/** Creates the node server with limits that apply before any of this code runs (reliability: bounds and time limits). */
export function createListener(options: ListenerOptions): Server | SecureServer {
  const limits = {
    headersTimeout: 5_000,
    // Covers the receipt of a request only: a response may stream for as long as it likes. Long enough for an upload at
    // the slowest accepted pace; other bodies have 30 s (`readBody`).
    requestTimeout: 3_600_000,
    connectionsCheckingInterval: 1_000,
    maxHeaderSize: 16 * 1024,
    // Longer than the idle time of common proxies (60 s), so that it is they who close.
    keepAliveTimeout: 75_000,
    // Checked by the origin policy, whose response has a body and a request id.
    requireHostHeader: false,
    insecureHTTPParser: false,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    noDelay: true,
    // Other upgrades (some clients offer h2c with every first request) are ordinary requests.
    shouldUpgradeCallback: (incoming: IncomingMessage) =>
      incoming.method === 'GET' &&
      incoming.headers.upgrade?.toLowerCase() === 'websocket' &&
      options.isSocketPath(splitTarget(incoming.url ?? '/').path),
  };
  const server = options.tls === undefined ? createServer(limits) : createSecureServer(limits, options.tls);
  server.maxConnections = options.maxConnections;
  return server;
}

function createSecureServer(limits: ServerOptions, { files, requireClientCert }: NonNullable<ListenerOptions['tls']>): SecureServer {
  // A module of node that most daemons never load.
  const server = process.getBuiltinModule('node:https').createServer({
    ...limits,
    ...files,
    handshakeTimeout: handshakeMs,
    requestCert: requireClientCert,
    rejectUnauthorized: requireClientCert,
  });
  const secure = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const timer = setTimeout(() => socket.destroy(), handshakeMs);
    timer.unref();
    const stop = (): void => clearTimeout(timer);
    socket.once('close', stop);
    // Until the handshake owns the socket, nothing else handles its errors.
    const onError = (): void => void socket.destroy();
    socket.on('error', onError);
    const sniff = (): void => {
      const first: Buffer | null = socket.read(1);
      if (first === null) {
        if (!socket.readableEnded) socket.once('readable', sniff);
        return;
      }
      stop();
      if (first[0] !== handshakeRecord) return refusePlainHttp(socket);
      socket.unshift(first);
      socket.off('error', onError);
      for (const listener of secure) listener.call(server, socket);
    };
    sniff();
  });
  return server;
}

/** First byte of every TLS connection: the record type of a handshake (RFC 8446 §5.1). */
const handshakeRecord = 0x16;

/** Explains the mistake to a client that sent plain HTTP, in a form that every client shows. */
function refusePlainHttp(socket: Socket): void {
  const text = 'This port speaks HTTPS: use https:// in the address.\n';
  const head = ['HTTP/1.1 400 Bad Request', 'connection: close', 'content-type: text/plain; charset=utf-8', `content-length: ${text.length}`];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroySoon());
}

/** Returns the answer to bytes that are not an acceptable HTTP request; undefined when nobody is there to read it. */
export function protocolFailure(error: Error): { readonly status: number; readonly error: AppError } | undefined {
  switch ('code' in error ? error.code : undefined) {
    case 'ECONNRESET':
    case 'EPIPE':
      return undefined;
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, error: new AppError('invalid_envelope', 'The header of the request is larger than 16 KiB') };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, error: new AppError('timeout', 'The request was not complete in time') };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, error: new AppError('payload_too_large', 'The chunk extensions of the request are too large') };
    default:
      return { status: 400, error: new AppError('invalid_envelope', 'The bytes are not a valid HTTP/1.1 request') };
  }
}

/** Answers on a bare socket, without a response object, and closes it. */
export function writeRaw(
  socket: Duplex,
  status: number,
  error: AppError,
  context: { readonly path?: string; readonly requestId?: string } = {},
): void {
  const requestId = context.requestId ?? `req_${randomUUID().replaceAll('-', '')}`;
  const body = JSON.stringify(errorBody(familyOf(context.path ?? ''), error, requestId));
  const retryAfter = retryAfterSeconds(error);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`,
    'connection: close',
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'x-content-type-options: nosniff',
    `x-request-id: ${requestId}`,
    ...(retryAfter === undefined ? [] : [`retry-after: ${retryAfter}`]),
  ];
  socket.on('error', () => {});
  if (socket.writable) socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
  else socket.destroy();
}
