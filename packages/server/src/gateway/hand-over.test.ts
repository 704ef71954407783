import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { HttpCall, isHandedOver } from './http-call.ts';

let stop = async (): Promise<void> => {};
afterEach(() => stop());

/** Answers each request with a stream that is handed over after its first line; returns what node did with it. */
async function startStreams({ mayHandOver }: { readonly mayHandOver: boolean }) {
  const released: IncomingMessage[] = [];
  const seen: { readonly call: HttpCall; readonly socket: Socket & { readonly parser?: unknown } }[] = [];
  const server = createServer((incoming, outgoing) => {
    const call = new HttpCall(incoming, outgoing, '127.0.0.1');
    call.mayHandOver = mayHandOver;
    seen.push({ call, socket: incoming.socket });
    outgoing.useChunkedEncodingByDefault = false;
    call.setHeader('connection', 'close');
    call.writeHead(200);
    outgoing.write('one\n');
    call.handOver();
  });
  server.on('upgrade', (incoming) => released.push(incoming));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stop = async () => {
    server.closeAllConnections();
    for (const { socket } of seen) socket.destroy();
    server.close();
    await once(server, 'close');
  };
  const { port } = server.address() as AddressInfo;
  const [response] = (await once(get({ port, host: '127.0.0.1' }), 'response')) as [IncomingMessage];
  response.setEncoding('utf8');
  expect((await once(response, 'data'))[0]).toBe('one\n');
  const [open] = seen;
  if (open === undefined) throw new Error('no request arrived');
  return { ...open, released, response };
}

// `upgrade` is a mark of node's own server, not its interface: a version that handles it differently must fail here.
test(`node ${process.version} releases the socket of a stream that is handed over, frees its parser, and continues to write it`, async () => {
  const { call, socket, released, response } = await startStreams({ mayHandOver: true });
  await expect.poll(() => released).toEqual([call.incoming]);
  expect(isHandedOver(call.incoming)).toBe(true);
  expect(socket.parser ?? null).toBe(null);
  call.outgoing.write('two\n');
  expect((await once(response, 'data'))[0]).toBe('two\n');
  call.outgoing.end();
  await once(response, 'end');
});

test('a stream that may not be handed over keeps its parser and works the same', async () => {
  const { call, socket, released, response } = await startStreams({ mayHandOver: false });
  expect([released.length, isHandedOver(call.incoming)]).toEqual([0, false]);
  expect(socket.parser ?? null).not.toBe(null);
  call.outgoing.end('two\n');
  expect((await once(response, 'data'))[0]).toBe('two\n');
  await once(response, 'end');
});
