import { createHmac } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { percentile } from './stats.ts';

export interface HttpLoad {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent with each request; or these, one after the other. */
  readonly body: unknown;
  readonly bodies?: readonly unknown[];
  /** Adds the HMAC of each body, SHA-256 in hex. */
  readonly sign?: { readonly header: string; readonly secret: string };
  readonly connections: number;
  readonly ms: number;
  /** Counts deltas, and an answer is good only when `[DONE]` came. */
  readonly stream: boolean;
  /** Spreads the first requests over so many milliseconds. */
  readonly staggerMs?: number;
  /** Ends after so many requests, if that is before `ms`. */
  readonly requests?: number;
}

export interface HttpLoadResult {
  readonly good: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly wallMs: number;
  readonly deltas: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** Time to the first delta with text. */
  readonly ttft50: number;
  readonly ttft99: number;
}

const headEnd = Buffer.from('\r\n\r\n');
const lastChunk = '0\r\n\r\n';
const deltaMark = Buffer.from('"content":"');
const doneMark = Buffer.from('data: [DONE]');
const quote = 0x22;
/** Further failures add no information. */
const maxErrors = 200;

/**
 * A closed loop over keep-alive connections on raw sockets: cheap, so that the client's own CPU does not become the
 * limit. Ends after `ms`, answers in progress included, at the latest ten seconds later.
 */
export async function httpLoad(load: HttpLoad): Promise<HttpLoadResult> {
  const url = new URL(load.url);
  const requests = (load.bodies ?? [load.body]).map((body) => requestOf(url, load, body));
  const latencies: number[] = [];
  const firsts: number[] = [];
  const errors: Record<string, number> = {};
  let failed = 0;
  let deltas = 0;
  let sent = 0;
  const most = load.requests ?? Infinity;
  const started = performance.now();
  const end = started + load.ms;
  const over = (): boolean => sent >= most || performance.now() >= end || failed > maxErrors;
  const fail = (what: string): void => {
    errors[what] = (errors[what] ?? 0) + 1;
    failed += 1;
  };

  function worker(index: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    let socket: Socket;
    let reader = new AnswerReader(load.stream);
    let sentAt = 0;
    const send = (): void => {
      if (over()) {
        socket.destroy();
        return resolve();
      }
      reader = new AnswerReader(load.stream);
      sentAt = performance.now();
      socket.write(requests[sent % requests.length] ?? '');
      sent += 1;
    };
    const finish = (): void => {
      const now = performance.now();
      if (reader.status !== 200) fail(`status ${reader.status}`);
      else if (load.stream && !reader.done) fail('stream without [DONE]');
      else {
        latencies.push(now - sentAt);
        if (load.stream) firsts.push(reader.firstDeltaAt - sentAt);
        deltas += reader.deltas;
      }
      send();
    };
    const open = (): void => {
      socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
      socket.on('connect', send);
      socket.on('data', (bytes: Buffer) => {
        if (reader.push(bytes)) finish();
      });
      socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
      socket.on('close', () => {
        if (over()) return resolve();
        fail('closed');
        setTimeout(open, 10);
      });
    };
    setTimeout(open, ((load.staggerMs ?? 0) * index) / load.connections);
    return promise;
  }

  const workers = Promise.all(Array.from({ length: load.connections }, (_, index) => worker(index)));
  // The run ends whatever the server does.
  await Promise.race([workers, new Promise((resolve) => setTimeout(resolve, load.ms + 10_000).unref())]);
  const wallMs = performance.now() - started;
  latencies.sort((a, b) => a - b);
  firsts.sort((a, b) => a - b);
  return {
    good: latencies.length,
    errors,
    wallMs,
    deltas,
    p50: percentile(latencies, 0.5),
    p95: percentile(latencies, 0.95),
    p99: percentile(latencies, 0.99),
    max: latencies.at(-1) ?? NaN,
    ttft50: percentile(firsts, 0.5),
    ttft99: percentile(firsts, 0.99),
  };
}

function requestOf(url: URL, { headers: more, sign }: HttpLoad, body: unknown): Buffer {
  const payload = Buffer.from(JSON.stringify(body));
  const signature = sign && { [sign.header]: createHmac('sha256', sign.secret).update(payload).digest('hex') };
  const headers = { host: url.host, 'content-type': 'application/json', 'content-length': payload.length, ...more, ...signature };
  const head = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  return Buffer.concat([Buffer.from(`POST ${url.pathname} HTTP/1.1\r\n${head}\r\n`), payload]);
}

/** Reads one HTTP/1.1 answer, by length or chunked, and counts the deltas that carry text. */
class AnswerReader {
  status = 0;
  deltas = 0;
  done = false;
  firstDeltaAt = NaN;
  readonly #stream: boolean;
  #head: Buffer | undefined;
  #inBody = false;
  /** Bytes of the body still to come; -1 when it is chunked. */
  #left = -1;
  #tail = '';
  #carry: Buffer | undefined;

  constructor(stream: boolean) {
    this.#stream = stream;
  }

  /** True when the answer is complete. */
  push(bytes: Buffer): boolean {
    let body = bytes;
    if (!this.#inBody) {
      const all = this.#head ? Buffer.concat([this.#head, bytes]) : bytes;
      const at = all.indexOf(headEnd);
      if (at === -1) {
        this.#head = all;
        return false;
      }
      const head = all.toString('latin1', 0, at).toLowerCase();
      this.status = Number(head.slice(9, 12));
      const length = /\ncontent-length: *(\d+)/.exec(head)?.[1];
      if (length !== undefined) this.#left = Number(length);
      this.#inBody = true;
      body = all.subarray(at + headEnd.length);
      if (this.#left === 0) return true;
      if (body.length === 0) return false;
    }
    if (this.#stream) this.#scan(body);
    if (this.#left >= 0) {
      this.#left -= body.length;
      return this.#left <= 0;
    }
    const tail = (this.#tail + body.toString('latin1', Math.max(0, body.length - lastChunk.length))).slice(-lastChunk.length);
    this.#tail = tail;
    return tail === lastChunk;
  }

  #scan(bytes: Buffer): void {
    const all = this.#carry ? Buffer.concat([this.#carry, bytes]) : bytes;
    let counted = 0;
    for (let at = all.indexOf(deltaMark); at !== -1; at = all.indexOf(deltaMark, counted)) {
      const next = all[at + deltaMark.length];
      if (next === undefined) break;
      // The role delta has an empty text and does not count.
      if (next !== quote) {
        this.deltas += 1;
        if (this.deltas === 1) this.firstDeltaAt = performance.now();
      }
      counted = at + deltaMark.length;
    }
    if (all.includes(doneMark)) this.done = true;
    // A mark may be cut by the end of a read.
    this.#carry = all.subarray(Math.max(counted, all.length - doneMark.length));
  }
}
