import { createServer, type ServerResponse } from 'node:http';
import { fullWork, type Work } from './full.ts';
import { complete, stream } from './upstream.ts';
import { completion, errorBody, framer, newId, parseBody, type ChatBody } from './wire.ts';

// R: a chat completion on bare node:http, parsed, validated, requested upstream and emitted again. With FULL=1 it is F.
const none: Work = { before: () => true, after: () => undefined };
const work = process.env['FULL'] === '1' ? fullWork() : none;

function json(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

async function answerStream(body: ChatBody, response: ServerResponse, startedMs: number): Promise<void> {
  const id = newId();
  const frames = framer(id, body.model);
  let text = '';
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' });
  response.write(frames.role);
  await stream(body, {
    delta(part) {
      text += part;
      response.write(frames.delta(part));
    },
    finish(reason, usage) {
      response.write(frames.finish(reason));
      if (body.includeUsage && usage) response.write(frames.usage(usage));
    },
  });
  response.end(frames.done);
  work.after(id, body, text, startedMs);
}

async function answerWhole(body: ChatBody, response: ServerResponse, startedMs: number): Promise<void> {
  const id = newId();
  const { content, finish, usage } = await complete(body);
  json(response, 200, completion(id, body.model, content, finish, usage));
  work.after(id, body, content, startedMs);
}

createServer((request, response) => {
  if (request.url === '/health') {
    response.writeHead(200);
    return response.end('ok');
  }
  if (request.method !== 'POST' || request.url !== '/v1/chat/completions') return json(response, 404, errorBody('not found', 'not_found_error'));
  if (!work.before(request)) return json(response, 401, errorBody('unauthorized', 'authentication_error'));
  const startedMs = Date.now();
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    let raw: unknown;
    try {
      raw = JSON.parse(Buffer.concat(parts).toString());
    } catch {
      return json(response, 400, errorBody('bad json', 'invalid_request_error'));
    }
    const parsed = parseBody(raw);
    if ('error' in parsed) return json(response, 400, parsed.error);
    (parsed.body.stream ? answerStream : answerWhole)(parsed.body, response, startedMs).catch((error: unknown) => {
      if (response.headersSent) response.end();
      else json(response, 502, errorBody(String(error), 'server_error'));
    });
  });
}).listen(Number(process.env['PORT']), '127.0.0.1');
