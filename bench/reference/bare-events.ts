import { createServer, type ServerResponse } from 'node:http';

// One event to all readers of `GET /api/events`, as a bare write of the same bytes to each. `POST /emit` makes an event. Frozen (see README.md).
const readers = new Set<ServerResponse>();
let lastId = 0;
createServer((request, response) => {
  if (request.method === 'POST') {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      lastId += 1;
      const frame = Buffer.from(`id: ${lastId}\nevent: sent\ndata: ${Buffer.concat(parts).toString()}\n\n`);
      for (const reader of readers) reader.socket?.write(frame);
      response.end('{}');
    });
    return;
  }
  if (request.url !== '/api/events') {
    response.writeHead(200);
    response.end('ok');
    return;
  }
  response.useChunkedEncodingByDefault = false;
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', connection: 'close' });
  response.write('retry: 3000\n\n');
  readers.add(response);
  response.on('close', () => readers.delete(response));
}).listen(Number(process.env['PORT']), '127.0.0.1');
