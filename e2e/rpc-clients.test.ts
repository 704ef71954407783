import jayson from 'jayson/promise/index.js';
import { Client } from 'rpc-websockets';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bearer, http } from '../proving/lib/http.ts';
import { type Product, startProduct } from './lib/product.ts';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product[Symbol.asyncDispose]());

describe('jayson', () => {
  const client = () => jayson.Client.http({ host: '127.0.0.1', port: product.port, path: '/rpc', headers: bearer(product.token) });

  test('a call, a turn and an error', async () => {
    expect(await client().request('system.ping', {})).toMatchObject({ jsonrpc: '2.0', result: { pong: true } });
    product.provider.queue({ text: 'By another route.' });
    expect(await client().request('agent.execute', { message: 'hello', sessionKey: 'jayson:e2e' })).toMatchObject({
      result: { response: 'By another route.', finishReason: 'stop', sessionKey: 'jayson:e2e' },
    });
    expect(await client().request('no.such', {})).toMatchObject({ error: { code: -32601 } });
    expect(await client().request('system.ping', { unknown: 1 })).toMatchObject({ error: { code: -32602, data: { issues: [{ path: 'unknown' }] } } });
  });

  test('a batch of calls and notifications: replies for the calls, in order', async () => {
    const one = client();
    const ping = one.request('system.ping', {}, undefined, false);
    const list = one.request('agents.list', {}, undefined, false);
    const note = jayson.Utils.request('system.ping', {}, null);
    const replies: unknown = await one.request([ping, note, list]);
    expect(replies).toMatchObject([
      { id: ping.id, result: { pong: true } },
      { id: list.id, result: { agents: ['default'] } },
    ]);
  });

  test('a notification gets no reply', async () => {
    expect(await client().request([jayson.Utils.request('system.ping', {}, null)])).toBeUndefined();
    const only = await http({
      port: product.port,
      path: '/rpc',
      headers: bearer(product.token),
      body: [
        { jsonrpc: '2.0', method: 'system.ping' },
        { jsonrpc: '2.0', method: 'no.such' },
      ],
    });
    expect([only.status, only.text]).toEqual([204, '']);
  });
});

describe('rpc-websockets', () => {
  test('calls without params, with params, errors and notifications over /ws?token=', async () => {
    const client = new Client(`ws://127.0.0.1:${product.port}/ws?token=${product.token}`, { reconnect: false });
    await new Promise<void>((resolve, reject) => {
      client.on('open', () => resolve());
      client.on('error', reject);
    });
    try {
      expect(await client.call('system.ping')).toMatchObject({ pong: true });
      await client.notify('system.ping');
      product.provider.queue({ text: 'Over the socket.' });
      expect(await client.call('agent.execute', { message: 'hello', sessionKey: { userId: 'socket', channelId: 'e2e' } })).toMatchObject({
        response: 'Over the socket.',
        sessionKey: 'socket:e2e',
      });
      await expect(client.call('no.such')).rejects.toMatchObject({ code: -32601 });
      const history = await client.call('session.history', { sessionKey: 'socket:e2e' });
      expect(history).toMatchObject({
        total: 2,
        messages: [
          { role: 'user', content: 'hello' },
          { role: 'assistant', content: 'Over the socket.' },
        ],
      });
    } finally {
      client.close();
    }
  });

  test('the token of the query is in no log', () => {
    expect(product.daemon.stderr() + product.daemon.stdout()).not.toContain(product.token);
  });

  test('a wrong token is closed with 4001', async () => {
    const client = new Client(`ws://127.0.0.1:${product.port}/ws?token=not-a-token-at-all`, { reconnect: false });
    const code = await new Promise<number>((resolve) => client.on('close', (closed: number) => resolve(closed)));
    expect(code).toBe(4001);
  });
});
