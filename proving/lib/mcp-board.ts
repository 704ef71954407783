import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as z from 'zod';

const Message = z.looseObject({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string(),
  params: z.looseObject({ name: z.string().optional(), arguments: z.looseObject({ text: z.string() }).optional() }).optional(),
});
const schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

/** A local MCP server of notes: `look` answers with the given text, `post` stores its argument and confirms it `postMs` later. */
export async function startMcpBoard(look: (text: string) => string, { postMs = 0 } = {}) {
  const posts: string[] = [];
  const results: Readonly<Record<string, (message: z.output<typeof Message>) => object>> = {
    initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'board', version: '1' } }),
    ping: () => ({}),
    'tools/list': () => ({ tools: ['look', 'post'].map((name) => ({ name, inputSchema: schema })) }),
    'tools/call': ({ params }) => {
      const text = params?.arguments?.text ?? '';
      if (params?.name === 'post') posts.push(text);
      return { content: [{ type: 'text', text: params?.name === 'post' ? 'posted' : look(text) }] };
    },
  };
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray()).toString();
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const message = Message.parse(JSON.parse(body));
    if (message.id === undefined) return void response.writeHead(202).end();
    const result = results[message.method]?.(message);
    if (postMs > 0 && message.params?.name === 'post') await new Promise((resolve) => setTimeout(resolve, postMs));
    const reply = result === undefined ? { error: { code: -32601, message: 'No such method' } } : { result };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...reply }));
  }
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    posts,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
