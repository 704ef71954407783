import { connect, type Socket } from 'node:net';

/** What a connection received until it ended. */
export interface RawReply {
  /** The bytes, as latin1. */
  readonly text: string;
  /** False: the server had not closed within `timeoutMs`, and the socket was cut from this side. */
  readonly closed: boolean;
  readonly ms: number;
}

/**
 * Writes bytes that need not be HTTP to 127.0.0.1 and collects the answer until the server closes. With `half` the
 * sending side ends after the bytes, so that the server does not wait for the rest of an incomplete request.
 */
export function rawRequest(options: {
  readonly port: number;
  readonly bytes: string | Buffer;
  readonly half?: boolean;
  readonly timeoutMs?: number;
  readonly localAddress?: string;
  /** Cuts the socket once it holds for the received bytes. */
  readonly until?: (text: string) => boolean;
}): Promise<RawReply> {
  const begun = performance.now();
  return new Promise((resolve) => {
    let text = '';
    const socket = openRaw(options);
    socket.on('connect', () => {
      if (options.half === true) socket.end(bytesOf(options.bytes));
      else socket.write(bytesOf(options.bytes));
    });
    const finish = (closed: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, closed, ms: performance.now() - begun });
    };
    const timer = setTimeout(() => finish(false), options.timeoutMs ?? 10_000);
    socket.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString('latin1')).slice(-1_000_000);
      if (options.until?.(text) === true) finish(false);
    });
    socket.on('close', () => finish(true));
  });
}

/** A bare connection to 127.0.0.1 whose errors count as its end. */
export function openRaw(options: { readonly port: number; readonly localAddress?: string }): Socket {
  const socket = connect({
    port: options.port,
    host: '127.0.0.1',
    allowHalfOpen: true,
    ...(options.localAddress !== undefined && { localAddress: options.localAddress }),
  });
  socket.setNoDelay(true);
  socket.on('error', () => {});
  // With half-open sockets this side must answer the end of the other side.
  socket.on('end', () => socket.end());
  return socket;
}

/** Texts represent bytes one to one. */
function bytesOf(bytes: string | Buffer): Buffer {
  return typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
}

/** Returns the status of every answer that a connection received, without searching inside bodies. */
export function statusesOf(text: string): number[] {
  const statuses: number[] = [];
  for (let at = 0; at < text.length;) {
    const headEnd = text.indexOf('\r\n\r\n', at);
    const head = text.slice(at, headEnd === -1 ? undefined : headEnd);
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]);
    if (!Number.isInteger(status)) break;
    statuses.push(status);
    if (headEnd === -1) break;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    at = headEnd + 4 + (status < 200 || status === 204 || status === 304 ? 0 : length);
    if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      const end = text.indexOf('0\r\n\r\n', at);
      at = end === -1 ? text.length : end + 5;
    }
  }
  return statuses;
}

/** Runs `work` on every item, at most `width` at once. */
export async function inParallel<T>(items: Iterable<T>, width: number, work: (item: T) => Promise<void>): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

/** Returns the value below which `share` of the numbers lie; 0 for none. */
export function percentile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
