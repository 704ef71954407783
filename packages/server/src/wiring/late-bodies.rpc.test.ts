import { connect } from 'node:net';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } } } });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Sends a request whose last byte waits for `meanwhile`; returns the whole answer. */
async function sendSlowly(
  { path, token, body, headers = '', type = 'application/json' }: { path: string; token: string; body: string; headers?: string; type?: string },
  meanwhile: () => Promise<unknown>,
): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  let answer = '';
  const ended = new Promise<void>((resolve) => socket.on('close', resolve));
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
  socket.on('error', () => {});
  const head = `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${token}\r\ncontent-type: ${type}\r\n${headers}`;
  socket.write(`${head}connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body.slice(0, -1)}`);
  // Authenticated as soon as its headers are there; the answer to a second request shows that they are.
  await server.client.call('system.ping', {});
  await meanwhile();
  socket.write(body.slice(-1));
  await ended;
  return answer;
}
const rpc = (method: string, params: object) => ({ path: '/rpc', body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) });
const revoke = (id: string) => () => server.client.call('tokens.revoke', { id });

test('a token that is revoked while the body of its request arrives starts nothing with it', async () => {
  const owner = await server.as(['*']);
  const made = await sendSlowly({ ...rpc('tokens.create', { id: 'backdoor', scopes: ['*'] }), token: owner.token }, revoke(owner.tokenId));
  expect(made).toMatch(/^HTTP\/1\.1 401 /);
  expect((await server.client.call('tokens.list', {})).tokens.map(({ id }) => id)).not.toContain('backdoor');

  const caller = await server.as(['rpc']);
  const before = server.provider.requests.length;
  const chat = { path: '/api/chat/stream', body: JSON.stringify({ message: 'Hello' }), headers: 'idempotency-key: late\r\n' };
  expect(await sendSlowly({ ...chat, token: caller.token }, revoke(caller.tokenId))).toMatch(/^HTTP\/1\.1 401 /);
  expect(server.provider.requests).toHaveLength(before);

  const sender = await server.as(['*']);
  const file = { path: '/media?fileName=late.txt', body: 'a late file', type: 'text/plain' };
  expect(await sendSlowly({ ...file, token: sender.token }, revoke(sender.tokenId))).toMatch(/^HTTP\/1\.1 401 /);
});

test('a token that is limited while the body of its request arrives has only what it grants now', async () => {
  const { id, secret } = await server.client.call('tokens.create', { id: 'narrowed', scopes: ['admin'] });
  const narrow = () => server.client.call('tokens.create', { id, scopes: ['admin'], agents: ['other'], replace: true });
  expect(await sendSlowly({ ...rpc('agents.list', {}), token: secret }, narrow)).toContain('{"agents":["other"]}');
});
