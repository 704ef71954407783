import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CutProxy extends AsyncDisposable {
  /** Base address without a trailing slash. */
  readonly url: string;
  /** Number of open connections. */
  readonly open: number;
  /** Closes all connections: `end` like a server that has finished, `reset` like a broken link. */
  cut(how: 'end' | 'reset'): void;
}

/** Starts a proxy to `port` of 127.0.0.1 whose connections can be cut. */
export async function startCutProxy(port: number): Promise<CutProxy> {
  const links = new Map<Socket, Socket>();
  const server = createServer((client) => {
    const upstream = connect({ port, host: '127.0.0.1' });
    links.set(client, upstream);
    const close = (): void => {
      links.delete(client);
      // Sends pending data before closing.
      client.end();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', close).on('close', close);
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  function cut(how: 'end' | 'reset'): void {
    for (const [client, upstream] of links) {
      upstream.unpipe(client);
      if (how === 'end') client.end();
      else client.resetAndDestroy();
      upstream.destroy();
    }
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get open() {
      return links.size;
    },
    cut,
    async [Symbol.asyncDispose]() {
      cut('reset');
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
