import { connect } from 'node:net';

export interface Churn {
  readonly url: string;
  /** Whole requests as they go over the wire, taken in turn. */
  readonly requests: readonly string[];
  /** Connections in all, and at one time. */
  readonly count: number;
  readonly width: number;
  /** How long a client stays after the first byte of its answer: it disconnects in the middle of longer streams. */
  readonly stayMs: number;
  /** Nothing is started after it. */
  readonly ms: number;
}

export interface ChurnResult {
  readonly opened: number;
  /** Connections that never got a byte. */
  readonly unanswered: number;
}

/** Clients that connect, send a request and vanish. */
export async function churn(job: Churn): Promise<ChurnResult> {
  const url = new URL(job.url);
  const end = performance.now() + job.ms;
  let opened = 0;
  let unanswered = 0;

  function visit(request: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    let heard = false;
    const limit = setTimeout(() => socket.destroy(), 5_000);
    socket.on('connect', () => socket.write(request));
    socket.on('data', () => {
      if (heard) return;
      heard = true;
      setTimeout(() => socket.destroy(), job.stayMs);
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      clearTimeout(limit);
      if (!heard) unanswered += 1;
      resolve();
    });
    return promise;
  }

  async function visitor(): Promise<void> {
    while (opened < job.count && performance.now() < end) {
      const request = job.requests[opened % job.requests.length] ?? '';
      opened += 1;
      await visit(request);
    }
  }
  await Promise.all(Array.from({ length: job.width }, visitor));
  return { opened, unanswered };
}
