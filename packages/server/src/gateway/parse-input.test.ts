import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

let server: TestServer;
beforeAll(async () => void (server = await startTestServer()));
afterAll(() => server[Symbol.asyncDispose]());

const many = (piece: string, times: number) => `${`${piece},`.repeat(times)}${piece}`;
const unknown = Array.from({ length: 5_000 }, (_, n) => `"k${n}":1`).join(',');

it.each([
  ['/v1/chat/completions', `{"model":"m","messages":[${many('1', 200_000)}]}`, 'messages.0: '],
  ['/v1/responses', `{"model":"m","input":[${many('1', 300_000)}]}`, 'input.0: '],
  ['/api/chat', `{"message":"m",${unknown}}`, 'k0: unknown field; k1: unknown field; '],
  ['/rpc', `{"jsonrpc":"2.0","id":1,"method":"system.ping","params":{${unknown}}}`, 'k0: unknown field; k1: unknown field; '],
])('reports the errors in a body of %s briefly, however many there are', async (path, body, words) => {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body,
  });
  const text = await response.text();
  expect([path, response.status]).toEqual([path, path === '/rpc' ? 200 : 400]);
  expect(text).toContain(words);
  expect(text).toContain('; and more"');
  expect(text.length).toBeLessThan(20_000);
});
