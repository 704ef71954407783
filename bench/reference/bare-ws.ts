import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

// JSON-RPC `system.ping` with nothing around it: no authentication, no validation, no limits. Frozen (see README.md).
const server = createServer((_request, response) => {
  response.writeHead(200);
  response.end('ok');
});
const sockets = new WebSocketServer({ server, path: '/ws', perMessageDeflate: false, maxPayload: 1 << 20 });
sockets.on('connection', (socket) => {
  socket.on('message', (data) => {
    const message: { readonly method?: string; readonly id?: unknown } = JSON.parse(String(data));
    const id = message.id ?? null;
    if (message.method === 'system.ping') socket.send(JSON.stringify({ jsonrpc: '2.0', result: { pong: true, ts: Date.now() }, id }));
    else socket.send(JSON.stringify({ jsonrpc: '2.0', error: { code: -32601, message: 'Method not found' }, id }));
  });
});
server.listen(Number(process.env['PORT']), '127.0.0.1');
