import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError } from './app-error.ts';
import { createCheckedDial, type DialRules } from './checked-dial.ts';

/** An HTTP proxy for programs in the jail: its only way out, over checked addresses. */
export interface GuardedProxy extends AsyncDisposable {
  /** Returns why the last connection to this `host:port` failed, and forgets it; undefined when none did. `denied`: its address may not be dialled. */
  takeFailure(host: string): AppError | undefined;
}

const maxConnections = 128;
const dialMs = 10_000;
const idleMs = 600_000;
const maxFailures = 200;
/** Headers that concern the connection to the proxy. */
const hopHeaders = new Set(['connection', 'keep-alive', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'upgrade']);

/**
 * Listens on a socket in a private folder. Tunnels (`CONNECT`, used for https and WebSockets) and plain requests go to addresses
 * that `CheckedDial` has checked and dials itself, so that neither a redirect nor a name that changes leads to a private one.
 */
export async function openGuardedProxy(socketPath: string, rules: DialRules): Promise<GuardedProxy> {
  const { buildConnector } = await import('./undici.ts');
  const connect = createCheckedDial(rules).connector(buildConnector, dialMs);
  const failures = new Map<string, AppError>();
  const sockets = new Set<Duplex>();

  function follow(socket: Duplex): void {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  }

  /** Dials without encryption: a tunnel carries that of the program itself. */
  async function dial(hostname: string, port: string): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    connect({ hostname, host: hostname, protocol: 'http:', port }, (error, socket) => (error === null ? resolve(socket) : reject(error)));
    const socket = await promise;
    socket.setTimeout(idleMs, () => socket.destroy());
    follow(socket);
    return socket;
  }

  function noteFailure(host: string, cause: unknown): { readonly status: number; readonly text: string } {
    const error = cause instanceof AppError ? cause : new AppError('unavailable', `No connection to ${host}`, { cause });
    if (failures.size >= maxFailures) for (const first of failures.keys()) if (failures.delete(first)) break;
    failures.set(host, error);
    return { status: error.code === 'denied' ? 403 : 502, text: error.message };
  }

  const server = createServer({ maxHeaderSize: 65_536, requestTimeout: 0, headersTimeout: 30_000 });
  server.maxConnections = maxConnections;
  server.on('connection', follow);

  server.on('connect', (asked: IncomingMessage, client: Duplex, first: Buffer) => {
    const target = URL.parse(`http://${asked.url ?? ''}`);
    const host = asked.url ?? '';
    if (target === null || target.pathname !== '/' || target.username !== '') return void client.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    // The default port of http is left out by URL.
    dial(target.hostname, target.port === '' ? '80' : target.port).then(
      (upstream) => {
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        if (first.length > 0) upstream.write(first);
        client.pipe(upstream).pipe(client);
        client.on('close', () => upstream.destroy());
        upstream.on('close', () => client.destroy());
      },
      (error: unknown) => {
        const { status, text } = noteFailure(host, error);
        client.end(`HTTP/1.1 ${status} Refused\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n${text}`);
      },
    );
  });

  server.on('request', (asked: IncomingMessage, answer: ServerResponse) => {
    const target = URL.parse(asked.url ?? '');
    if (target?.protocol !== 'http:') return void answer.writeHead(400).end('Expected an address of http');
    const headers = Object.fromEntries(Object.entries(asked.headers).filter(([name]) => !hopHeaders.has(name)));
    const port = target.port === '' ? '80' : target.port;
    dial(target.hostname, port).then(
      (upstream) => {
        const forwarded = request({
          createConnection: () => upstream,
          method: asked.method,
          path: target.pathname + target.search,
          headers: { ...headers, host: target.host, connection: 'close' },
          setHost: false,
        });
        forwarded.on('response', (response) => {
          const received = Object.fromEntries(Object.entries(response.headers).filter(([name]) => !hopHeaders.has(name)));
          answer.writeHead(response.statusCode ?? 502, received);
          response.pipe(answer);
          response.on('error', () => answer.destroy());
        });
        forwarded.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end('The server ended the connection')));
        answer.on('close', () => upstream.destroy());
        asked.pipe(forwarded);
      },
      (error: unknown) => {
        const { status, text } = noteFailure(`${target.hostname}:${port}`, error);
        answer.writeHead(status, { 'content-type': 'text/plain', connection: 'close' }).end(text);
      },
    );
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, resolve);
  });
  return {
    takeFailure(host) {
      const failure = failures.get(host);
      failures.delete(host);
      return failure;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
