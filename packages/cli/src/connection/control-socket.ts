import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Fetch } from '@gatehouse/client';
import { CliError } from '../failure.ts';

/** The response of `GET /control/info`; `address` is null when the daemon has no listener. */
export interface ControlInfo {
  readonly address: string | null;
  readonly pid: number;
  readonly version: string;
}

interface ControlRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Readable | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Sends a request over the owner-only socket; returns undefined when no daemon listens there. */
function send(socketFile: string, { method, path, headers, body, signal }: ControlRequest): Promise<IncomingMessage | undefined> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath: socketFile, method, path, headers: { host: 'localhost', ...headers }, ...(signal === undefined ? {} : { signal }) },
      resolve,
    );
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      // EINVAL and ENAMETOOLONG: the path is too long for a socket address, so no daemon can listen there either.
      if (['ENOENT', 'ECONNREFUSED', 'ENOTDIR', 'EINVAL', 'ENAMETOOLONG'].includes(error.code ?? '')) resolve(undefined);
      else if (error.code === 'EACCES')
        reject(new CliError(`${socketFile} belongs to another user.`, { hint: 'Run this command as the user that runs the daemon.' }));
      else reject(error);
    });
    if (body instanceof Readable) pipeline(body, outgoing).catch(reject);
    else outgoing.end(body);
  });
}

/** Asks the daemon of this home for its address; returns undefined when none runs. */
export async function askControlInfo(socketFile: string): Promise<ControlInfo | undefined> {
  const incoming = await send(socketFile, { method: 'GET', path: '/control/info', signal: AbortSignal.timeout(5_000) });
  if (incoming === undefined) return undefined;
  const text = await readAll(incoming);
  const info: Partial<ControlInfo> = incoming.statusCode === 200 ? JSON.parse(text) : {};
  if (typeof info.pid !== 'number') throw new CliError(`The server at ${socketFile} is not a Gatehouse daemon (status ${incoming.statusCode}).`);
  return { address: typeof info.address === 'string' ? info.address : null, pid: info.pid, version: String(info.version) };
}

/** Starts a daemon job and yields its output lines; returns undefined when no daemon runs. */
export async function startControlJob(socketFile: string, path: string, params: object): Promise<AsyncIterable<string> | undefined> {
  const incoming = await send(socketFile, { method: 'POST', path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(params) });
  return incoming === undefined ? undefined : createInterface({ input: incoming, crlfDelay: Infinity });
}

/** Returns a `fetch` for the client that uses the socket, where the daemon trusts the owner and needs no token. */
export function socketFetch(socketFile: string): Fetch {
  return async (url, init) => {
    const { pathname, search } = new URL(url);
    const { body, headers: bodyHeaders } = bodyOf(init.body);
    const incoming = await send(socketFile, {
      method: init.method ?? 'GET',
      path: pathname + search,
      headers: { ...bodyHeaders, ...Object.fromEntries(new Headers(init.headers)) },
      body,
      signal: init.signal ?? undefined,
    });
    if (incoming === undefined) throw new Error(`no daemon listens on ${socketFile}`);
    const headers = Object.entries(incoming.headersDistinct).flatMap(([name, values]) =>
      (values ?? []).map((value): [string, string] => [name, value]),
    );
    const status = incoming.statusCode ?? 500;
    return new Response(status === 204 ? null : Readable.toWeb(incoming), { status, headers });
  };
}

/** Streams files with their length, so that the server can refuse them at once. */
function bodyOf(body: RequestInit['body']): { body: string | Readable | undefined; headers: Record<string, string> } {
  if (body === undefined || body === null || typeof body === 'string') return { body: body ?? undefined, headers: {} };
  const blob = body instanceof Blob ? body : new Blob([body instanceof Uint8Array ? new Uint8Array(body) : String(body)]);
  return { body: Readable.fromWeb(blob.stream()), headers: { 'content-length': String(blob.size) } };
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
