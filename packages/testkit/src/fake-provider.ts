import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { anthropicFrames, anthropicWhole, type FakeFrames, openAiFrames, openAiWhole } from './fake-provider-frames.ts';

/** The fake's answer to one request; everything is optional and can be combined. */
export interface FakeAnswer {
  /** The text, or its deltas. */
  readonly text?: string | readonly string[];
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  /** Reasoning before the text, one delta each (OpenAI wire). */
  readonly reasoning?: readonly string[];
  /** Reasoning before the text (Anthropic wire). */
  readonly thinking?: { readonly text: string; readonly signature: string };
  /** The stop sequence that ended it (Anthropic wire). */
  readonly stopSequence?: string;
  /** Null: the provider reports none. */
  readonly usage?: { readonly input: number; readonly output: number; readonly cacheRead?: number; readonly cacheWrite?: number } | null;
  /** The requested wire's own term. */
  readonly finishReason?: string;
  /** A status other than 200 is answered with `error` (or `body`) and `headers`. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly error?: { readonly message: string; readonly type?: string; readonly code?: string };
  /** Sent unchanged instead of the answer; for streams too. */
  readonly body?: string;
  readonly contentType?: string;
  /** Milliseconds before the status line. */
  readonly delayMs?: number;
  /** Awaited before the status line, so that a test decides when it is answered. */
  readonly after?: Promise<unknown>;
  /** Milliseconds between deltas. */
  readonly paceMs?: number;
  /** Awaited before each delta is written, so that a test decides when the stream continues. */
  readonly beforeDelta?: (nth: number) => Promise<unknown>;
  /** After this many deltas: an error frame, a malformed frame, a destroyed socket, silence, or a clean end without finish and [DONE]. */
  readonly breakAfter?: { readonly deltas: number; readonly by: 'error' | 'malformed' | 'cut' | 'stall' | 'end' };
  /** Neither status nor body ever arrives. */
  readonly hang?: boolean;
  /** Writes the stream in chunks of this many bytes, one per turn of the event loop. */
  readonly splitBytes?: number;
  /** Ends lines with CR LF. */
  readonly crlf?: boolean;
  /** Omits `data: [DONE]` (OpenAI wire). */
  readonly noDone?: boolean;
}

export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Parsed JSON of the body; undefined when there was none. */
  readonly body: unknown;
}

export interface FakeProviderOptions {
  readonly port?: number;
  /** Deltas of an unscripted stream. */
  readonly deltas?: number;
  /** Milliseconds between the deltas of models whose name does not specify it (`mock-fast`: 0, `mock-p10`: 10). */
  readonly paceMs?: number;
  readonly models?: readonly string[];
  /** When set, other keys are answered with 401. */
  readonly apiKey?: string;
  /** Answers every request that the queue does not; undefined uses the default answer. */
  readonly answer?: (request: FakeRequest) => FakeAnswer | undefined;
  /** Requests kept in the journal, 1000 by default; 0 for benchmarks. */
  readonly journal?: number;
  readonly embeddingDimensions?: number;
}

/** A provider with both wires, for tests, end-to-end suites and benchmarks. */
export interface FakeProvider {
  /** Base URL of the OpenAI-style wire and of Anthropic messages, ending in /v1. */
  readonly url: string;
  readonly port: number;
  /** Journal of received requests, oldest first. */
  readonly requests: FakeRequest[];
  /** Answers for the next model requests, in order. */
  queue(...answers: readonly FakeAnswer[]): void;
  /** Replaces `options.answer`. */
  setAnswer(answer: ((request: FakeRequest) => FakeAnswer | undefined) | undefined): void;
  /** Number of answers whose client disconnected before they were complete. */
  aborted(): number;
  openSockets(): number;
  /** Number of received requests, all kinds. */
  served(): number;
  close(): Promise<void>;
}

interface Wire {
  frames(model: string, answer: FakeAnswer): FakeFrames;
  whole(model: string, answer: FakeAnswer): Buffer;
}
const openAi: Wire = { frames: openAiFrames, whole: openAiWhole };
const anthropic: Wire = { frames: anthropicFrames, whole: anthropicWhole };

const filler = ['the ', 'gateway ', 'answers ', 'with ', 'small ', 'deltas ', 'one ', 'by ', 'one, ', 'quickly. '];

/** Starts a fake provider on 127.0.0.1; port 0 uses a free one. */
export async function startFakeProvider(options: FakeProviderOptions = {}): Promise<FakeProvider> {
  const deltas = options.deltas ?? 100;
  const journal = options.journal ?? 1000;
  const plain: FakeAnswer = { text: Array.from({ length: deltas }, (_, i) => filler[i % filler.length] ?? ''), usage: { input: 20, output: deltas } };
  const requests: FakeRequest[] = [];
  const queue: FakeAnswer[] = [];
  const sockets = new Set<Socket>();
  const prepared = new Map<string, { frames: FakeFrames; whole: Buffer }>();
  let scripted = options.answer;
  let paceMs = options.paceMs ?? 0;
  let served = 0;
  let aborted = 0;

  function prepare(wire: Wire, model: string) {
    const key = `${wire === openAi ? 'o' : 'a'} ${model}`;
    let entry = prepared.get(key);
    if (entry === undefined) {
      if (prepared.size > 1000) prepared.clear();
      entry = { frames: wire.frames(model, plain), whole: wire.whole(model, plain) };
      prepared.set(key, entry);
    }
    return entry;
  }

  function model(wire: Wire, request: FakeRequest, response: ServerResponse) {
    const name = stringField(request.body, 'model') ?? 'mock';
    const stream = isRecord(request.body) && request.body['stream'] === true;
    const answer = queue.shift() ?? scripted?.(request) ?? callsByName(name, request.body);
    let ended = false;
    response.on('finish', () => (ended = true));
    response.on('close', () => {
      if (!ended) aborted += 1;
    });
    if (answer !== undefined) {
      later(answer, response, () =>
        playAnswer(
          wire,
          name,
          stream,
          { text: answer.toolCalls === undefined ? (plain.text ?? '') : [], usage: usageOf(answer), ...answer },
          response,
        ),
      );
      return;
    }
    const entry = prepare(wire, name);
    if (!stream) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': entry.whole.length });
      response.end(entry.whole);
      return;
    }
    playStream(entry.frames, paceOf(name, paceMs), undefined, response);
  }

  function handle(request: FakeRequest, response: ServerResponse) {
    served += 1;
    if (journal > 0) {
      requests.push(request);
      if (requests.length > journal) requests.splice(0, requests.length - journal);
    }
    const path = request.path.split('?', 1)[0] ?? '';
    if (
      options.apiKey !== undefined &&
      request.headers.authorization !== `Bearer ${options.apiKey}` &&
      request.headers['x-api-key'] !== options.apiKey &&
      request.headers['api-key'] !== options.apiKey
    ) {
      sendJson(response, 401, {
        error: {
          message: `Incorrect API key provided: ${String(request.headers.authorization ?? request.headers['x-api-key'])}`,
          type: 'invalid_request_error',
          code: 'invalid_api_key',
        },
      });
    } else if (path === '/__pace') {
      paceMs = Number(new URL(request.path, 'http://fake').searchParams.get('ms'));
      sendJson(response, 200, { ok: true });
    } else if (path.endsWith('/chat/completions')) model(openAi, request, response);
    else if (path.endsWith('/messages')) model(anthropic, request, response);
    else if (path.endsWith('/embeddings')) embeddings(request, response, queue.shift() ?? scripted?.(request), options.embeddingDimensions ?? 8);
    else if (path.endsWith('/models'))
      sendJson(response, 200, {
        object: 'list',
        data: (options.models ?? ['mock-fast', 'mock-p10']).map((id) => ({ id, object: 'model', created: 0, owned_by: 'mock' })),
      });
    else if (request.method === 'GET') sendJson(response, 200, { ok: true, served });
    else sendJson(response, 404, { error: { message: `No route for ${path}`, type: 'invalid_request_error' } });
  }

  const server = createServer((request, response) =>
    readBody(request, (body) => handle({ method: request.method ?? '', path: request.url ?? '', headers: request.headers, body }, response)),
  );
  server.keepAliveTimeout = 120_000;
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    queue: (...answers) => void queue.push(...answers),
    setAnswer: (answer) => void (scripted = answer),
    aborted: () => aborted,
    openSockets: () => sockets.size,
    served: () => served,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function usageOf(answer: FakeAnswer) {
  if (answer.usage !== undefined) return answer.usage;
  const output = typeof answer.text === 'string' ? Math.ceil(answer.text.length / 4) : (answer.text?.length ?? 10);
  return { input: 20, output };
}

function paceOf(model: string, otherwise: number) {
  const paced = /-p(\d+)$/.exec(model);
  if (paced !== null) return Number(paced[1]);
  return model.endsWith('-fast') ? 0 : otherwise;
}

/** `mock-calls-50-ls` answers a question with fifty calls of `ls`, and their results with a word: for processes whose answers cannot be queued. */
function callsByName(model: string, body: unknown): FakeAnswer | undefined {
  const named = /-calls-(\d+)-(\w+)$/.exec(model);
  if (named === null) return undefined;
  const [, count, name = ''] = named;
  const messages = isRecord(body) && Array.isArray(body['messages']) ? body['messages'] : [];
  if (stringField(messages.at(-1), 'role') === 'tool') return { text: 'Done.' };
  return { toolCalls: Array.from({ length: Number(count) }, (_, index) => ({ id: `call_${index}`, name, arguments: '{}' })) };
}

function later({ after, delayMs }: FakeAnswer, response: ServerResponse, run: () => void) {
  if (after !== undefined) return void after.then(run);
  if (delayMs === undefined || delayMs <= 0) return run();
  const timer = setTimeout(run, delayMs);
  response.on('close', () => clearTimeout(timer));
}

function playAnswer(wire: Wire, model: string, stream: boolean, answer: FakeAnswer, response: ServerResponse) {
  if (answer.hang === true) return;
  if (answer.status !== undefined && answer.status !== 200) {
    const body =
      answer.body ?? JSON.stringify({ type: 'error', error: answer.error ?? { message: `Scripted status ${answer.status}`, type: 'api_error' } });
    response.writeHead(answer.status, { 'content-type': answer.contentType ?? 'application/json', ...answer.headers });
    response.end(body);
    return;
  }
  if (answer.body !== undefined) {
    response.writeHead(200, { 'content-type': answer.contentType ?? (stream ? 'text/event-stream' : 'application/json'), ...answer.headers });
    writeSplit(Buffer.from(answer.body), answer.splitBytes, response, () => response.end());
    return;
  }
  if (!stream) {
    response.writeHead(200, { 'content-type': 'application/json', ...answer.headers });
    response.end(wire.whole(model, answer));
    return;
  }
  playStream(wire.frames(model, answer), answer.paceMs ?? 0, answer, response);
}

function playStream(frames: FakeFrames, paceMs: number, answer: FakeAnswer | undefined, response: ServerResponse) {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', ...answer?.headers });
  const breakAfter = answer?.breakAfter;
  const count = breakAfter === undefined ? frames.deltas.length : Math.min(breakAfter.deltas, frames.deltas.length);
  const finish = () => {
    if (breakAfter === undefined) {
      response.end(frames.tail);
    } else if (breakAfter.by === 'error') {
      response.end(frames.error);
    } else if (breakAfter.by === 'malformed') {
      response.write('data: {"choices":[{"index":0,"delta":{"content":"bro\n\n');
      response.end(frames.tail);
    } else if (breakAfter.by === 'end') {
      response.end();
    } else if (breakAfter.by === 'cut') {
      // The deltas before the cut must reach the peer: an immediate reset may drop them.
      setImmediate(() => response.destroy());
    }
  };
  if (answer?.splitBytes !== undefined) {
    const whole = Buffer.concat([frames.head, ...frames.deltas.slice(0, count), ...(breakAfter === undefined ? [frames.tail] : [])]);
    writeSplit(whole, answer.splitBytes, response, breakAfter === undefined ? () => response.end() : finish);
    return;
  }
  response.write(frames.head);
  if (answer?.beforeDelta !== undefined) {
    void writeStepped(frames.deltas.slice(0, count), answer.beforeDelta, response).then(finish);
    return;
  }
  if (paceMs === 0) {
    // Each delta is a separate write, hence a separate chunk on the wire.
    for (let i = 0; i < count; i += 1) response.write(frames.deltas[i]);
    finish();
    return;
  }
  let i = 0;
  const timer = setInterval(() => {
    if (i < count) response.write(frames.deltas[i++]);
    if (i >= count) {
      clearInterval(timer);
      finish();
    }
  }, paceMs);
  response.on('close', () => clearInterval(timer));
}

async function writeStepped(deltas: readonly Buffer[], beforeDelta: (nth: number) => Promise<unknown>, response: ServerResponse) {
  for (const [nth, delta] of deltas.entries()) {
    await beforeDelta(nth);
    if (response.destroyed) return;
    response.write(delta);
  }
}

function writeSplit(bytes: Buffer, size: number | undefined, response: ServerResponse, done: () => void) {
  if (size === undefined) {
    response.write(bytes);
    return done();
  }
  let at = 0;
  const next = () => {
    if (response.destroyed) return;
    if (at >= bytes.length) return done();
    response.write(bytes.subarray(at, at + size));
    at += size;
    setImmediate(next);
  };
  next();
}

/** Vectors depend only on the text, so that a test can identify the text of a vector. */
export function fakeVector(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  for (let i = 0; i < text.length; i += 1) vector[i % dimensions] = (vector[i % dimensions] ?? 0) + text.charCodeAt(i) / 128;
  return vector;
}

function embeddings(request: FakeRequest, response: ServerResponse, answer: FakeAnswer | undefined, dimensions: number) {
  if (answer !== undefined) return playAnswer(openAi, '', false, { ...answer, body: answer.body ?? '{}' }, response);
  const input = isRecord(request.body) ? request.body['input'] : undefined;
  const texts = (Array.isArray(input) ? input : [input]).map(String);
  const base64 = stringField(request.body, 'encoding_format') === 'base64';
  const data = texts.map((text, index) => {
    const vector = fakeVector(text, dimensions);
    return { object: 'embedding', index, embedding: base64 ? Buffer.from(vector.buffer).toString('base64') : [...vector] };
  });
  const tokens = texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
  sendJson(response, 200, {
    object: 'list',
    data,
    model: stringField(request.body, 'model') ?? 'mock-embedding',
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
}

function sendJson(response: ServerResponse, status: number, body: unknown) {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
}

function readBody(request: IncomingMessage, done: (body: unknown) => void) {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (chunks.length === 0) return done(undefined);
    done(parsed((chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)).toString()));
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function stringField(value: unknown, key: string) {
  const field = isRecord(value) ? value[key] : undefined;
  return typeof field === 'string' ? field : undefined;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({
    options: { port: { type: 'string', default: '9100' }, deltas: { type: 'string', default: '100' }, 'pace-ms': { type: 'string', default: '0' } },
  });
  const provider = await startFakeProvider({
    port: Number(values.port),
    deltas: Number(values.deltas),
    paceMs: Number(values['pace-ms']),
    journal: 0,
  });
  console.log(`mock ready ${provider.port}`);
}
