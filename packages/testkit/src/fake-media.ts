import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** One request to the fake, with the parts of a form. */
export interface MediaRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Parsed JSON; undefined for other bodies. */
  readonly json: unknown;
  /** Fields of a form; files as their first bytes in latin1. */
  readonly form: Readonly<Record<string, string>>;
}

export interface MediaAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly bytes?: Buffer;
  /** Awaited before it answers. */
  readonly after?: Promise<unknown>;
}

/** A server with the wires of vendors of speech, images and video: OpenAI, Groq, Deepgram, ElevenLabs, Google and fal. */
export interface FakeMedia extends AsyncDisposable {
  /** Without a path; vendors differ in theirs. */
  readonly url: string;
  readonly port: number;
  readonly requests: MediaRequest[];
  /** Answers for the next requests, in order. */
  queue(...answers: readonly MediaAnswer[]): void;
  /** Number of requests whose client left before the answer. */
  aborted(): number;
}

/** One pixel. */
export const tinyPng = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

/** Returns a WAV file of silence. */
export function silentWav(seconds: number): Buffer {
  const perSecond = 16_000;
  const data = Buffer.alloc(44 + Math.round(seconds * perSecond));
  data.write('RIFF', 0, 'latin1');
  data.writeUInt32LE(data.length - 8, 4);
  data.write('WAVEfmt ', 8, 'latin1');
  data.writeUInt32LE(16, 16);
  data.writeUInt16LE(1, 20);
  data.writeUInt16LE(1, 22);
  data.writeUInt32LE(8000, 24);
  data.writeUInt32LE(perSecond, 28);
  data.writeUInt16LE(2, 32);
  data.writeUInt16LE(16, 34);
  data.write('data', 36, 'latin1');
  data.writeUInt32LE(data.length - 44, 40);
  return data;
}

/** The beginning of sound in a format, as far as magic bytes go. */
export function soundOf(format: string): Buffer {
  if (format === 'wav' || format === 'pcm') return silentWav(0.1);
  if (format.startsWith('opus')) return Buffer.from(`OggS\0\u0002${'\0'.repeat(20)}\u0001\u0013OpusHead\u0001\u0001${'\0'.repeat(64)}`, 'latin1');
  if (format === 'flac') return Buffer.concat([Buffer.from('fLaC'), Buffer.alloc(60)]);
  if (format === 'aac') return Buffer.concat([Buffer.from([0xff, 0xf1, 0x50, 0x80, 0x02, 0x1f, 0xfc]), Buffer.alloc(60)]);
  return Buffer.concat([Buffer.from('ID3\u0004\0\0\0\0\0\0', 'latin1'), Buffer.from([0xff, 0xfb, 0x90, 0x64]), Buffer.alloc(413)]);
}

export async function startFakeMedia(): Promise<FakeMedia> {
  const requests: MediaRequest[] = [];
  const queue: MediaAnswer[] = [];
  const sockets = new Set<Socket>();
  let aborted = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const type = request.headers['content-type'] ?? '';
      const asked: MediaRequest = {
        path: request.url ?? '',
        headers: request.headers,
        body,
        json: type.startsWith('application/json') ? (JSON.parse(body.toString()) as unknown) : undefined,
        form: type.startsWith('multipart/form-data') ? formOf(body, type) : {},
      };
      requests.push(asked);
      response.on('close', () => {
        if (!response.writableEnded) aborted += 1;
      });
      const answer = queue.shift() ?? answerTo(asked);
      void Promise.resolve(answer.after).then(() => send(response, answer));
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    queue: (...answers) => void queue.push(...answers),
    aborted: () => aborted,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function send(response: ServerResponse, { status = 200, headers = {}, json, bytes }: MediaAnswer): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': bytes === undefined ? 'application/json' : 'application/octet-stream', ...headers });
  response.end(bytes ?? JSON.stringify(json ?? {}));
}

/** Text fields whole, files by their beginning. */
function formOf(body: Buffer, type: string): Record<string, string> {
  const boundary = /boundary=([^;]+)/.exec(type)?.[1] ?? '';
  const fields: Record<string, string> = {};
  for (const part of body.toString('latin1').split(`--${boundary}`)) {
    const name = /name="([^"]+)"/.exec(part)?.[1];
    const start = part.indexOf('\r\n\r\n');
    if (name !== undefined && start !== -1) fields[name] = part.slice(start + 4, -2).slice(0, 200);
  }
  return fields;
}

const field = (json: unknown, name: string): unknown =>
  typeof json === 'object' && json !== null ? Object.entries(json).find(([key]) => key === name)?.[1] : undefined;
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The answer of each vendor's wire. */
function answerTo({ path, json, form }: MediaRequest): MediaAnswer {
  const [route = '', query = ''] = path.split('?');
  if (route.endsWith('/audio/transcriptions'))
    return {
      json:
        form['response_format'] === 'verbose_json'
          ? { text: 'Hello from the recording.', language: 'english', duration: 2.5 }
          : { text: 'Hello from the recording.' },
    };
  if (route.endsWith('/listen'))
    return {
      json: {
        metadata: { duration: 2.5 },
        results: { channels: [{ detected_language: 'en', alternatives: [{ transcript: 'Hello from the recording.', confidence: 0.99 }] }] },
      },
    };
  if (route.endsWith('/audio/speech')) return { bytes: soundOf(text(field(json, 'response_format'))) };
  if (route.includes('/text-to-speech/')) return { bytes: soundOf(new URLSearchParams(query).get('output_format') ?? 'mp3') };
  const image = tinyPng.toString('base64');
  if (route.endsWith('/images/generations') || route.endsWith('/images/edits')) return { json: { created: 1, data: [{ b64_json: image }] } };
  if (route.endsWith(':predict')) return { json: { predictions: [{ bytesBase64Encoded: image, mimeType: 'image/png' }] } };
  if (route.endsWith(':generateContent')) {
    const modalities = JSON.stringify(field(field(json, 'generationConfig'), 'responseModalities') ?? '');
    if (modalities.includes('IMAGE'))
      return { json: { candidates: [{ content: { parts: [{ inlineData: { mimeType: 'image/png', data: image } }] } }] } };
    return {
      json: { candidates: [{ content: { parts: [{ text: 'A cat jumps.' }] } }], usageMetadata: { promptTokenCount: 1000, candidatesTokenCount: 10 } },
    };
  }
  if (route.endsWith('/chat/completions'))
    return {
      json: { choices: [{ message: { role: 'assistant', content: 'A cat jumps.' } }], usage: { prompt_tokens: 1000, completion_tokens: 10 } },
    };
  if (route.startsWith('/fal-ai/')) return { json: { images: [{ url: `data:image/png;base64,${image}`, content_type: 'image/png' }] } };
  return { status: 404, json: { error: { message: `No route for ${route}` } } };
}
