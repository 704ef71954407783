import { startTestServer } from '@gatehouse/testkit';
import { freePort } from '@gatehouse/testkit/free-port';
import { expect, it } from 'vitest';

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
