import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { percentile } from './stats.ts';

export interface WsLoad {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly message: unknown;
  readonly connections: number;
  readonly ms: number;
}
export interface WsLoadResult {
  readonly good: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly p50: number;
  readonly p99: number;
}

/** Sends one call after the other on each connection, by a small RFC 6455 client with masking key 0. An answer with `"error"` counts as failed. */
export async function wsLoad(load: WsLoad): Promise<WsLoadResult> {
  const url = new URL(load.url);
  const frame = clientFrame(Buffer.from(JSON.stringify(load.message)));
  const latencies: number[] = [];
  const errors: Record<string, number> = {};
  const fail = (what: string): void => {
    errors[what] = (errors[what] ?? 0) + 1;
  };
  const end = performance.now() + load.ms;

  function connection(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    const upgrade = {
      host: url.host,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': randomBytes(16).toString('base64'),
      ...load.headers,
    };
    let buffer: Buffer = Buffer.alloc(0);
    let open = false;
    let finished = false;
    let sentAt = 0;
    const send = (): void => {
      if (performance.now() > end) {
        finished = true;
        socket.destroy();
        return;
      }
      sentAt = performance.now();
      socket.write(frame);
    };
    socket.on('connect', () => {
      const head = Object.entries(upgrade)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('');
      socket.write(`GET ${url.pathname} HTTP/1.1\r\n${head}\r\n`);
    });
    socket.on('data', (bytes: Buffer) => {
      buffer = buffer.length > 0 ? Buffer.concat([buffer, bytes]) : bytes;
      if (!open) {
        const at = buffer.indexOf('\r\n\r\n');
        if (at === -1) return;
        const status = buffer.toString('latin1', 9, 12);
        if (status !== '101') {
          fail(`status ${status}`);
          finished = true;
          socket.destroy();
          return;
        }
        open = true;
        buffer = buffer.subarray(at + 4);
        send();
      }
      for (let read = serverFrame(buffer); read; read = serverFrame(buffer)) {
        buffer = buffer.subarray(read.size);
        if (read.opcode !== 1) continue;
        if (read.payload.includes('"error"')) fail(read.payload.toString('utf8', 0, 120));
        else latencies.push(performance.now() - sentAt);
        send();
      }
    });
    socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
    socket.on('close', () => {
      if (!finished) fail('closed');
      resolve();
    });
    setTimeout(() => socket.destroy(), load.ms + 3000).unref();
    return promise;
  }

  await Promise.all(Array.from({ length: load.connections }, connection));
  latencies.sort((a, b) => a - b);
  return { good: latencies.length, errors, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

function clientFrame(payload: Buffer): Buffer {
  const { length } = payload;
  const head = length < 126 ? [0x81, 0x80 | length] : [0x81, 0xfe, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), Buffer.alloc(4), payload]);
}

function serverFrame(buffer: Buffer): { readonly opcode: number; readonly payload: Buffer; readonly size: number } | undefined {
  if (buffer.length < 2) return undefined;
  const short = buffer.readUInt8(1) & 127;
  if (short === 126 && buffer.length < 4) return undefined;
  const head = short === 126 ? 4 : 2;
  const length = short === 126 ? buffer.readUInt16BE(2) : short;
  if (buffer.length < head + length) return undefined;
  return { opcode: buffer.readUInt8(0) & 15, payload: buffer.subarray(head, head + length), size: head + length };
}
