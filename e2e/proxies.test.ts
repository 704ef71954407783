import https from 'node:https';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { makeAuthority, makeCertificate, type Pair } from '../packages/testkit/src/certificates.ts';
import { bearer } from '../proving/lib/http.ts';
import { findCommand } from '../tools/system-packages.mjs';
import { type Product, startProduct } from './lib/product.ts';
import { guideHost, type RunningProxy, startProxy } from './lib/proxy.ts';

const deltas = 12;
let product: Product;
let authority: Pair;
let pair: Pair;
beforeAll(async () => {
  authority = await makeAuthority('Proxy Authority');
  pair = await makeCertificate(guideHost, authority, {}, [guideHost]);
  product = await startProduct({ config: { gateway: { allowedHosts: [guideHost], trustedProxies: ['127.0.0.1'] } } });
});
afterAll(() => product[Symbol.asyncDispose]());

for (const name of ['nginx', 'caddy'] as const) {
  const missing = findCommand(name) === undefined;
  describe.skipIf(missing)(`${name} with the lines of the guide${missing ? ` (skipped: the program ${name} is not installed)` : ''}`, () => {
    let proxy: RunningProxy | undefined;
    beforeAll(async () => {
      proxy = await startProxy(name, product.port, pair);
    });
    afterAll(() => proxy?.[Symbol.asyncDispose]());

    const secure = () => ({ host: '127.0.0.1', port: proxy?.port, servername: guideHost, ca: authority.cert });

    /** Sends one request through the proxy; `onData` receives each chunk as it arrives. */
    function ask(options: https.RequestOptions & { readonly body?: object; readonly onData?: (text: string) => void }) {
      const { body, onData, headers, ...rest } = options;
      return new Promise<{ readonly status: number; readonly text: string; readonly headers: NodeJS.Dict<string | string[]> }>((resolve, reject) => {
        const outgoing = https.request(
          {
            ...secure(),
            ...rest,
            agent: false,
            headers: { host: guideHost, ...bearer(product.token), 'content-type': 'application/json', ...headers },
          },
          (incoming) => {
            let text = '';
            incoming.on('data', (piece: Buffer) => {
              text += piece.toString();
              onData?.(piece.toString());
            });
            incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text, headers: incoming.headers }));
            incoming.on('error', reject);
          },
        );
        outgoing.on('error', reject);
        outgoing.end(body === undefined ? undefined : JSON.stringify(body));
      });
    }

    test('whole answers and errors pass unchanged', async () => {
      expect(await ask({ path: '/health' })).toMatchObject({ status: 200, text: expect.stringMatching(/^\{"status":/) });
      expect(await ask({ path: '/v1/models', headers: { authorization: 'Bearer nobody-knows-this-one' } })).toMatchObject({ status: 401 });
      const limit = await ask({
        method: 'POST',
        path: '/rpc',
        body: { jsonrpc: '2.0', id: 1, method: 'system.ping', params: { pad: 'x'.repeat(2_000_000) } },
      });
      expect(limit.status).toBe(413);
    });

    test('a stream arrives as it is written: no chunk is held back until the next one', async () => {
      let received = 0;
      const arrivals = Array.from({ length: deltas }, () => Promise.withResolvers<void>());
      const beforeDelta = async (nth: number) => arrivals[nth - 1]?.promise;
      product.provider.setAnswer(() => ({ text: Array.from({ length: deltas }, (_, index) => `piece-${index} `), beforeDelta }));
      const { status, text } = await ask({
        method: 'POST',
        path: '/v1/chat/completions',
        body: { model: 'local/test-model', stream: true, messages: [{ role: 'user', content: 'go' }] },
        onData: (piece) => {
          for (const _ of piece.matchAll(/piece-\d+ /g)) arrivals[received++]?.resolve();
        },
      });
      product.provider.setAnswer(undefined);
      expect(status).toBe(200);
      expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
      expect(received).toBe(deltas);
    });

    test('a client that disconnects from a stream aborts the turn behind the proxy', async () => {
      product.provider.setAnswer(() => ({ text: Array.from({ length: 200 }, () => 'long '), paceMs: 50 }));
      const before = product.provider.aborted();
      const leaving = new AbortController();
      const left = ask({
        method: 'POST',
        path: '/v1/chat/completions',
        signal: leaving.signal,
        body: { model: 'local/test-model', stream: true, messages: [{ role: 'user', content: 'go' }] },
        onData: (piece) => piece.includes('long') && leaving.abort(),
      });
      await expect(left).rejects.toThrow();
      await expect.poll(() => product.provider.aborted()).toBe(before + 1);
      product.provider.setAnswer(undefined);
    });

    test('a whole WebSocket session', async () => {
      // The types of ws omit `servername`, which it passes to node:tls.
      const options = { ca: authority.cert, servername: guideHost, headers: { host: guideHost, ...bearer(product.token) } };
      const socket = new WebSocket(`wss://127.0.0.1:${proxy?.port}/ws`, options);
      const replies: unknown[] = [];
      await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
      socket.on('message', (data: Buffer) => replies.push(JSON.parse(data.toString())));
      socket.send('{"jsonrpc":"2.0","id":1,"method":"system.ping"}');
      await expect.poll(() => replies).toMatchObject([{ id: 1, result: { pong: true } }]);
      const pong = new Promise((resolve) => socket.once('pong', resolve));
      socket.ping();
      await pong;
      product.provider.queue({ text: `Through ${name}.` });
      socket.send('{"jsonrpc":"2.0","id":2,"method":"agent.execute","params":{"message":"hello"}}');
      await expect.poll(() => replies[1]).toMatchObject({ id: 2, result: { response: `Through ${name}.` } });
      const closed = new Promise<number>((resolve) => socket.once('close', resolve));
      socket.close(1000);
      expect(await closed).toBe(1000);
    });

    test('each event arrives before the next one happens', async () => {
      const leaving = new AbortController();
      const heard: string[] = [];
      let open = false;
      const stream = ask({
        path: '/api/events?kinds=agent:hot_added',
        signal: leaving.signal,
        onData: (text) => {
          open = true;
          for (const [, agentId = ''] of text.matchAll(/"agentId":"([^"]+)"/g)) heard.push(agentId);
        },
      });
      stream.catch(() => undefined);
      await expect.poll(() => open).toBe(true);
      for (let round = 0; round < 4; round += 1) {
        const agentId = `${name}-${round}`;
        await product.call('agents.create', { agentId, config: {} });
        await expect.poll(() => heard.at(-1)).toBe(agentId);
      }
      leaving.abort();
      await expect(stream).rejects.toThrow();
    });
  });
}
