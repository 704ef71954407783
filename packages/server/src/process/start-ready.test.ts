import { createServer } from 'node:net';
import { startTestServer } from '@gatehouse/testkit';
import { expect, it } from 'vitest';

/** Returns a port that is free now. */
async function freePort(): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const server = createServer().listen(0, '127.0.0.1', () => {
    const address = server.address();
    server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
  });
  return promise;
}

it('is ready once startup is over, and not before', async () => {
  const port = await freePort();
  let isOver = false;
  const starting = startTestServer({ config: { gateway: { port } } }).finally(() => (isOver = true));
  const seen: { ready: boolean; isOver: boolean }[] = [];
  while (!seen.some(({ ready }) => ready)) {
    const response = await fetch(`http://127.0.0.1:${port}/health?ready`).catch(() => undefined);
    if (response === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      continue;
    }
    const { status } = (await response.json()) as { status: string };
    if (response.status === 503) expect(status).toBe('starting');
    seen.push({ ready: response.status === 200, isOver });
  }
  await using _server = await starting;
  expect(seen.at(-1)).toEqual({ ready: true, isOver: true });
});
