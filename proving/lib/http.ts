import { type Agent, type IncomingHttpHeaders, request } from 'node:http';

export interface HttpRequest {
  readonly port: number;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text is sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  /** Another loopback address, so that limits per address count separately. */
  readonly localAddress?: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Called with each chunk of the body as it arrives. */
  readonly onData?: (text: string) => void;
  readonly agent?: Agent;
  /** The answer is endless: its first chunk counts as the answer and the connection is cut. */
  readonly endless?: boolean;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends one HTTP request to 127.0.0.1 and reads the whole body. Rejects when the connection breaks before the body is complete. */
export function http(options: HttpRequest): Promise<HttpReply> {
  const { body } = options;
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port: options.port,
        method: options.method ?? (text === undefined ? 'GET' : 'POST'),
        path: options.path,
        headers: {
          ...(text !== undefined && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }),
          ...options.headers,
        },
        ...(options.localAddress !== undefined && { localAddress: options.localAddress }),
        ...(options.signal !== undefined && { signal: options.signal }),
        ...(options.agent !== undefined && { agent: options.agent }),
        timeout: options.timeoutMs ?? 15_000,
      },
      (incoming) => {
        const pieces: string[] = [];
        incoming.setEncoding('utf8');
        incoming.on('data', (piece: string) => {
          pieces.push(piece);
          options.onData?.(piece);
          if (options.endless !== true) return;
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text: piece });
          outgoing.destroy();
        });
        incoming.on('end', () =>
          incoming.complete
            ? resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text: pieces.join('') })
            : reject(new Error('the answer broke off')),
        );
        incoming.on('error', reject);
      },
    );
    outgoing.on('timeout', () =>
      outgoing.destroy(new Error(`no answer from ${options.path} within ${options.timeoutMs ?? 15_000} ms: ${text?.slice(0, 200) ?? ''}`)),
    );
    outgoing.on('error', reject);
    outgoing.end(text);
  });
}

export const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
