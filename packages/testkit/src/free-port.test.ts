import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { freePort } from './free-port.ts';

it('is never given twice, and can be listened on', async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, freePort));
  expect(new Set(ports).size).toBe(ports.length);
  for (const port of ports.slice(0, 5)) {
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
  }
});

it('is lower than the ports that the system assigns', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const assigned = typeof address === 'object' && address !== null ? address.port : 0;
  const client = connect(assigned, '127.0.0.1');
  await once(client, 'connect');
  expect(await freePort()).toBeLessThan(Math.min(assigned, client.localPort ?? 0));
  client.destroy();
  server.close();
});
