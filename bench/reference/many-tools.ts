import { createServer } from 'node:http';

/** An MCP server of TOOLS tools over streamable HTTP on PORT, as small as the protocol allows: each request is answered on its own. */
const count = Number(process.env['TOOLS']);
const tools = Array.from({ length: count }, (_, n) => ({
  name: `shelf_${n}`,
  description: `Looks up what is on shelf ${n} of the store and how many there are.`,
  inputSchema: {
    type: 'object',
    properties: { part: { type: 'string', description: 'Number of the part.' }, limit: { type: 'integer', minimum: 1, maximum: 100 } },
    required: ['part'],
  },
}));

function answer(method: string, params: { readonly protocolVersion?: string } | undefined): object | undefined {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params?.protocolVersion ?? '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'many-tools', version: '1.0.0' },
      };
    case 'tools/list':
      return { tools };
    case 'ping':
      return {};
    default:
      return undefined;
  }
}

const server = createServer((request, response) => {
  if (request.method !== 'POST') return void response.writeHead(request.url === '/health' ? 200 : 405).end();
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const { id, method, params } = JSON.parse(Buffer.concat(parts).toString());
    if (id === undefined) return void response.writeHead(202).end();
    const result = answer(method, params);
    const outcome = result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
  });
});
server.listen(Number(process.env['PORT']), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
