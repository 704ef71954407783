import type { Readable, Writable } from 'node:stream';

export type JsonRecord = Readonly<Record<string, unknown>>;

/** A failure reported to the other side, with a code of JSON-RPC. */
export class RpcFailure extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export interface PeerHandlers {
  /** Answers a request; a failure is thrown. */
  readonly request: (method: string, params: JsonRecord) => Promise<unknown>;
  readonly notification: (method: string, params: JsonRecord) => void;
}

/** One line is one message; longer ones end the connection. */
const maxLineLength = 32 * 1024 * 1024;

/** JSON-RPC 2.0 over lines, in both directions. */
export class Peer {
  readonly #output: Writable;
  readonly #handlers: PeerHandlers;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #nextId = 1;

  constructor(output: Writable, handlers: PeerHandlers) {
    this.#output = output;
    this.#handlers = handlers;
  }

  /** Reads messages until the input ends. */
  async read(input: Readable): Promise<void> {
    let rest = '';
    input.setEncoding('utf8');
    for await (const chunk of input) {
      const lines = (rest + String(chunk)).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > maxLineLength) throw new Error('A message is too long.');
      for (const line of lines) if (line.trim() !== '') this.#take(line);
    }
    for (const { reject } of this.#waiting.values()) reject(new Error('The client has left.'));
  }

  notify(method: string, params: object): void {
    this.#send({ method, params });
  }

  async request(method: string, params: object): Promise<unknown> {
    const id = this.#nextId;
    this.#nextId += 1;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(id, answer);
    this.#send({ id, method, params });
    return await answer.promise;
  }

  #take(line: string): void {
    const message = parseRecord(line);
    if (message === undefined) return this.#send({ id: null, error: { code: -32_700, message: 'Not a JSON object' } });
    const { id, method } = message;
    const params = toRecord(message['params']);
    if (typeof method !== 'string') return this.#settle(message);
    if (id === undefined || id === null) return this.#handlers.notification(method, params);
    void this.#answer(id, method, params);
  }

  #settle({ id, result, error }: JsonRecord): void {
    const waiting = typeof id === 'number' ? this.#waiting.get(id) : undefined;
    if (waiting === undefined || typeof id !== 'number') return;
    this.#waiting.delete(id);
    if (error === undefined || error === null) waiting.resolve(result);
    else waiting.reject(new Error(String(toRecord(error)['message'] ?? 'The client refused the request.')));
  }

  async #answer(id: unknown, method: string, params: JsonRecord): Promise<void> {
    try {
      this.#send({ id, result: (await this.#handlers.request(method, params)) ?? null });
    } catch (error) {
      const code = error instanceof RpcFailure ? error.code : -32_603;
      this.#send({ id, error: { code, message: error instanceof Error ? error.message : String(error) } });
    }
  }

  #send(message: object): void {
    this.#output.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
}

function parseRecord(line: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function toRecord(value: unknown): JsonRecord {
  return isRecord(value) ? value : {};
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
