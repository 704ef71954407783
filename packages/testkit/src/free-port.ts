import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below the ports that systems assign: neither an outgoing connection nor a listener on any free port takes one of these. */
const first = 20_000;
const count = 6_000;

/**
 * Returns a port of 127.0.0.1 that nothing listens on, and that no other test process is given while this one lives: the process keeps
 * listening on the port's twin, `count` above it. A port that was only free a moment ago may be given to two suites at once.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * count);
    const twin = await listen(port + count);
    if (twin === undefined) continue;
    const probe = await listen(port);
    if (probe !== undefined) {
      probe.close();
      await once(probe, 'close');
      return port;
    }
    twin.close();
  }
}

/** Returns undefined when something else listens on the port. */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().unref().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}
