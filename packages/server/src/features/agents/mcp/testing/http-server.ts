import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import * as z from 'zod';

const Message = z.looseObject({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z
    .looseObject({ name: z.string().optional(), arguments: z.record(z.string(), z.unknown()).optional(), cursor: z.string().optional() })
    .optional(),
});
export type Message = z.output<typeof Message>;

export interface TestTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
  readonly annotations?: unknown;
}

export interface McpTestServer extends AsyncDisposable {
  readonly url: string;
  readonly sseUrl: string;
  readonly port: number;
  /** What it offers; changed by tests. */
  tools: readonly TestTool[];
  readonly received: Message[];
  /** Headers of the requests. */
  readonly headers: Record<string, string | string[] | undefined>[];
  /** Answers of `tools/call` by tool: a result, or a function that creates one. */
  readonly calls: Map<string, (args: Record<string, unknown>, signal: AbortSignal) => unknown>;
  /** Handles the request instead of the protocol when it returns true. */
  intercept: ((request: IncomingMessage, response: ServerResponse, message: Message | undefined) => boolean | Promise<boolean>) | undefined;
  /** Sends to every open stream. */
  notify(method: string): void;
  /** Forgets all sessions, as a restart would. */
  forgetSessions(): void;
  /** Cuts every open stream. */
  cutStreams(): void;
  readonly sessions: ReadonlySet<string>;
  stop(): Promise<void>;
}

export const textResult = (text: string) => ({ content: [{ type: 'text', text }] });
export const plainSchema = { type: 'object', properties: { text: { type: 'string' } } };

/** A small MCP server on the loopback: streamable HTTP at /mcp, HTTP with SSE at /sse. */
export async function startMcpHttpServer(port = 0): Promise<McpTestServer> {
  const sessions = new Set<string>();
  const streams = new Set<ServerResponse>();
  const sseStreams = new Map<string, ServerResponse>();
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });

  async function answer(message: Message, signal: AbortSignal): Promise<unknown> {
    if (message.id === undefined) return undefined;
    const reply = (result: unknown) => ({ jsonrpc: '2.0', id: message.id, result });
    switch (message.method) {
      case 'initialize':
        return reply({
          protocolVersion: '2025-11-25',
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'test', version: '1.2.3' },
          instructions: 'Use \u202ewith care\u001b[31m!',
        });
      case 'ping':
        return reply({});
      case 'tools/list':
        return reply({ tools: self.tools.map((tool) => ({ inputSchema: plainSchema, ...tool })) });
      case 'tools/call': {
        const make = self.calls.get(message.params?.name ?? '');
        if (make === undefined) return { jsonrpc: '2.0', id: message.id, error: { code: -32602, message: `No tool ${message.params?.name}` } };
        return reply(await make(message.params?.arguments ?? {}, signal));
      }
      default:
        return { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'No such method' } };
    }
  }

  function openStream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': open\n\n');
    streams.add(response);
    response.on('close', () => streams.delete(response));
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    self.headers.push(request.headers);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const message = text === '' ? undefined : Message.parse(JSON.parse(text));
    if (message !== undefined) self.received.push(message);
    if ((await self.intercept?.(request, response, message)) === true) return;
    const url = new URL(request.url ?? '', 'http://127.0.0.1');
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    if (url.pathname === '/sse') {
      const id = randomUUID();
      openStream(response);
      sseStreams.set(id, response);
      response.write(`event: endpoint\ndata: /messages?id=${id}\n\n`);
      return;
    }
    if (url.pathname === '/messages' && message !== undefined) {
      const stream = sseStreams.get(url.searchParams.get('id') ?? '');
      response.writeHead(202).end();
      const reply = await answer(message, new AbortController().signal);
      if (reply !== undefined) stream?.write(`event: message\ndata: ${JSON.stringify(reply)}\n\n`);
      return;
    }
    if (url.pathname !== '/mcp') {
      response.writeHead(404).end();
      return;
    }
    const session = request.headers['mcp-session-id'];
    const known = typeof session === 'string' && sessions.has(session);
    if (request.method === 'DELETE') {
      if (typeof session === 'string') sessions.delete(session);
      response.writeHead(200).end();
    } else if (request.method === 'GET') {
      if (known) openStream(response);
      else response.writeHead(404).end();
    } else if (message?.method !== 'initialize' && !known) {
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}');
    } else if (message?.id === undefined) {
      response.writeHead(202).end();
    } else {
      const reply = await answer(message, gone.signal);
      if (gone.signal.aborted) return;
      const own = message.method === 'initialize' ? randomUUID() : undefined;
      if (own !== undefined) sessions.add(own);
      response.writeHead(200, { 'content-type': 'application/json', ...(own !== undefined && { 'mcp-session-id': own }) }).end(JSON.stringify(reply));
    }
  }

  const self: McpTestServer = {
    url: '',
    sseUrl: '',
    port: 0,
    tools: [{ name: 'echo', description: 'Says it again.' }],
    received: [],
    headers: [],
    calls: new Map([['echo', (args) => textResult(`echo: ${String(args['text'])}`)]]),
    intercept: undefined,
    sessions,
    notify(method) {
      const event = `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', method })}\n\n`;
      for (const stream of streams) stream.write(event);
    },
    forgetSessions: () => sessions.clear(),
    cutStreams() {
      for (const stream of streams) stream.destroy();
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    [Symbol.asyncDispose]: async () => self.stop(),
  };
  // The port of a server that was just stopped may take a moment to be free.
  for (let tries = 0; ; tries += 1) {
    try {
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
      break;
    } catch (error) {
      if (tries === 20) throw error;
      await pause(25);
    }
  }
  const { port: bound } = server.address() as AddressInfo;
  return Object.assign(self, { port: bound, url: `http://127.0.0.1:${bound}/mcp`, sseUrl: `http://127.0.0.1:${bound}/sse` });
}
