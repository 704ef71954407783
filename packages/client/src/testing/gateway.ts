import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly bytes: Buffer;
  readonly response: ServerResponse;
}

export interface GatewayScript {
  /** Handles an HTTP request: a returned value is sent as JSON with status 200, undefined means that it has responded itself. */
  readonly http?: (request: SeenRequest) => unknown;
  readonly socket?: (connection: { socket: WebSocket; protocol: string; url: string; attempt: number }) => void;
}

/** Starts a real HTTP and WebSocket server on 127.0.0.1 that follows a script. */
export async function startGateway(script: GatewayScript) {
  const requests: SeenRequest[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const bytes = Buffer.concat(chunks);
      const seen: SeenRequest = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: bytes.toString(),
        bytes,
        response,
      };
      requests.push(seen);
      const answer = script.http?.(seen);
      if (answer !== undefined) response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    });
  });
  const sockets = new WebSocketServer({ server, path: '/ws' });
  sockets.on('connection', (socket, request) => {
    connections += 1;
    script.socket?.({ socket, protocol: request.headers['sec-websocket-protocol'] ?? '', url: request.url ?? '', attempt: connections });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      sockets.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Responds with a status and a JSON body. */
export function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): undefined {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** Starts an event stream with a text; it stays open until the response is ended or destroyed. */
export function streamEvents(response: ServerResponse, text: string): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text);
  return response;
}
