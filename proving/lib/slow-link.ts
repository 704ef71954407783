import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface SlowLinkOptions {
  /** Port of 127.0.0.1 that the links connect to. */
  readonly port: number;
  /** Bytes per second that a link carries to its client. */
  readonly bytesPerSecond: number;
  readonly rttMs: number;
}

export interface SlowLinks extends AsyncDisposable {
  readonly port: number;
}

const tickMs = 50;

/** A proxy whose every connection is a slow, long link: a token bucket towards the client, half of the round trip each way, and no more than both can hold in flight. */
export async function startSlowLinks({ port, bytesPerSecond, rttMs }: SlowLinkOptions): Promise<SlowLinks> {
  const perTick = (bytesPerSecond * tickMs) / 1000;
  const inFlight = Math.ceil((bytesPerSecond * rttMs) / 1000);
  const links = new Set<{ tick(): void; end(): void }>();

  function open(client: Socket): void {
    const server = connect({ port, host: '127.0.0.1', noDelay: true });
    const queue: Buffer[] = [];
    let queued = 0;
    let tokens = perTick;
    const later = (run: () => void): void => void setTimeout(run, rttMs / 2);
    const link = {
      tick() {
        tokens = Math.min(2 * perTick, tokens + perTick);
        while (queue.length > 0 && tokens >= 1) {
          const piece = queue[0] ?? Buffer.alloc(0);
          const some = piece.subarray(0, Math.floor(tokens));
          if (some.length === piece.length) queue.shift();
          else queue[0] = piece.subarray(some.length);
          tokens -= some.length;
          queued -= some.length;
          later(() => client.write(some));
        }
        if (queued < inFlight) server.resume();
      },
      end() {
        links.delete(link);
        server.destroy();
        client.destroy();
      },
    };
    links.add(link);
    server.on('data', (piece: Buffer) => {
      queue.push(piece);
      queued += piece.length;
      if (queued >= inFlight) server.pause();
    });
    client.on('data', (piece: Buffer) => later(() => server.write(piece)));
    for (const socket of [server, client]) socket.on('error', () => link.end()).on('close', () => link.end());
  }

  const listener = createServer({ noDelay: true }, open);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const timer = setInterval(() => links.forEach((link) => link.tick()), tickMs);
  return {
    port: (listener.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      for (const link of links) link.end();
      await new Promise<void>((resolve) => listener.close(() => resolve()));
    },
  };
}
