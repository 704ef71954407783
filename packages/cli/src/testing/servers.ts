import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Answer = (seen: Seen, response: ServerResponse) => unknown;

/** Starts a server on 127.0.0.1 or a socket file; sends the value that `answer` returns as JSON, undefined means that it has responded itself. */
export async function startServer(answer: Answer, socketFile?: string) {
  const requests: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
      requests.push(seen);
      const value = answer(seen, response);
      if (value !== undefined) response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
    });
  });
  if (socketFile !== undefined) await mkdir(dirname(socketFile), { recursive: true });
  await new Promise<void>((resolve) => (socketFile === undefined ? server.listen(0, '127.0.0.1', resolve) : server.listen(socketFile, resolve)));
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Returns a handler that answers `/rpc` by method name, with a result or `{error}`, and other paths from `others`. */
export function rpcAnswers(results: Readonly<Record<string, unknown>>, others: Readonly<Record<string, unknown>> = {}): Answer {
  return ({ path, body }) => {
    if (path !== '/rpc') return others[path] ?? { error: `Nothing at ${path}.`, code: 'not_found', requestId: 'rq' };
    const { id, method }: { id: number; method: string } = JSON.parse(body);
    const result = results[method] ?? { error: { code: -32601, message: `Method not found: ${method}`, data: { code: 'method_not_found' } } };
    const isError = typeof result === 'object' && result !== null && 'error' in result;
    return { jsonrpc: '2.0', id, ...(isError ? result : { result }) };
  };
}

export const health = { status: 'ok', version: '0.1.0', uptimeMs: 125_000, checks: { storage: { status: 'ok' } } };
export const token = 'a-token-of-more-than-thirty-two-characters';
