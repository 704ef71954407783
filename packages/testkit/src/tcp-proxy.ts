import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';

/** Forwards between a client and a server on 127.0.0.1, and fails as networks do. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** Ends all connections with a reset. */
  cut(): void;
  /** New connections are reset, too, until `accept`. */
  refuse(): void;
  accept(): void;
  /** Forwards nothing any more, in both directions, on connections that exist and on new ones, until `resume`. */
  stall(): void;
  /** Once a client sends this text, forwards to the server alone: it does what it is asked, and nobody hears of it. Resolves then. */
  muteOn(text: string): Promise<void>;
  /** Once a client sends this text, forwards nothing any more, this text included: the server is never asked. Resolves then. */
  holdOn(text: string): Promise<void>;
  resume(): void;
  /** The server loses the connections that exist and the client does not notice: what it sends is never answered. New ones work. */
  halfOpen(): void;
  /** Number of connections that are half open. */
  readonly unnoticed: number;
  /** Number of connections so far, with those that were reset at once. */
  readonly accepted: number;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  lost: boolean;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  /** Also those that were reset: such a socket stays open until its peer has read what was written to it. */
  const open = new Set<Socket>();
  let refusing = false;
  let accepted = 0;
  let toServer = true;
  let toClient = true;
  let muting: string | undefined;
  let onMuted = () => {};
  let holding: string | undefined;
  let onHeld = () => {};

  /** Applies the present state to a connection: what is not forwarded stays in the buffers of the system. */
  function apply({ client, server, lost }: Pair): void {
    if (lost) return;
    if (toServer) client.resume();
    else client.pause();
    if (toClient) server.resume();
    else server.pause();
  }

  function setFlow(server: boolean, client: boolean): void {
    toServer = server;
    toClient = client;
    for (const pair of pairs) apply(pair);
  }

  const listener = createServer({ pauseOnConnect: true }, (client) => {
    accepted += 1;
    if (refusing) return void client.resetAndDestroy();
    const server = createConnection({ host: '127.0.0.1', port: targetPort });
    const pair: Pair = { client, server, lost: false };
    pairs.add(pair);
    for (const socket of [client, server]) {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    }
    client.setNoDelay(true);
    server.setNoDelay(true);
    client.on('data', (chunk) => {
      if (pair.lost) return;
      if (holding !== undefined && chunk.includes(holding)) {
        holding = undefined;
        setFlow(false, false);
        onHeld();
        return;
      }
      if (muting !== undefined && chunk.includes(muting)) {
        muting = undefined;
        setFlow(true, false);
        onMuted();
      }
      server.write(chunk);
    });
    server.on('data', (chunk) => void client.write(chunk));
    const end = () => {
      if (!pair.lost) client.resetAndDestroy();
      server.destroy();
      if (!pair.lost) pairs.delete(pair);
    };
    client.on('error', end).on('close', () => (server.destroy(), pairs.delete(pair)));
    server.on('error', end).on('close', end);
    apply(pair);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy does not listen');

  const cut = () => {
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
    pairs.clear();
  };
  return {
    port: address.port,
    cut,
    refuse() {
      refusing = true;
      cut();
    },
    accept: () => void (refusing = false),
    stall: () => setFlow(false, false),
    muteOn(text) {
      muting = text;
      return new Promise((resolve) => (onMuted = resolve));
    },
    holdOn(text) {
      holding = text;
      return new Promise((resolve) => (onHeld = resolve));
    },
    resume() {
      muting = undefined;
      holding = undefined;
      setFlow(true, true);
    },
    halfOpen() {
      for (const pair of pairs) {
        pair.lost = true;
        pair.client.resume();
        pair.server.resetAndDestroy();
      }
    },
    get unnoticed() {
      return [...pairs].filter(({ lost }) => lost).length;
    },
    get accepted() {
      return accepted;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}
