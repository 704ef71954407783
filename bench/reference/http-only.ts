import { createServer } from 'node:http';

// The floor of the start time: one route, no packages. Frozen like all of this folder (see README.md).
createServer((_request, response) => {
  response.writeHead(200);
  response.end('ok');
}).listen(Number(process.env['PORT']), '127.0.0.1');
