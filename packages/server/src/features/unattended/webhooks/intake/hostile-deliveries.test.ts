import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebhooksConfig } from '../config.ts';

const token = 'a-shared-secret-of-more-than-32-characters';
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: {
      webhooks: {
        token,
        presets: ['github', 'gmail'],
        mappings: [
          {
            id: 'greedy',
            match: { path: 'greedy' },
            messageTemplate: '{{payload}}'.repeat(200),
            sessionKey: '{{payload}}',
            dedupeKey: '{{payload}}',
          },
          { id: 'odd/key', match: { path: 'Odd/a%20b' }, messageTemplate: 'Odd {{a}}' },
          { id: 'sourced', match: { path: 'sourced', source: '__proto__' } },
          { id: 'rest', match: { path: 'rest' } },
        ],
      },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const sign = (body: string, secret = token) => createHmac('sha256', secret).update(body).digest('hex');
const headersOf = (path: string, body: string): Record<string, string> =>
  path === 'github' ? { 'x-hub-signature-256': `sha256=${sign(body)}` } : { 'x-webhook-signature': sign(body) };
const send = (path: string, body: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/hooks/${path}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headersOf(path, body), ...headers },
  });
/** Sends a request with the given headers, including duplicates. */
const raw = (path: string, body: string, headers: Record<string, string | string[]>) =>
  new Promise<number>((resolve, reject) => {
    const { hostname, port } = new URL(server.url);
    const outgoing = request({ hostname, port, path: `/hooks/${path}`, method: 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });

describe('a hostile payload', () => {
  const bodies = [
    'null',
    '5',
    '""',
    '[]',
    '[[[]]]',
    '{}',
    '{"message":{"data":"%%%"}}',
    '{"message":{"data":5}}',
    '{"messages":{"0":null}}',
    '{"repository":"x","sender":[1]}',
  ];
  it.each(['github', 'gmail', 'rest', 'greedy'].flatMap((path) => bodies.map((body) => [path, body] as const)))(
    'is read literally by %s: %s',
    async (path, body) => {
      expect((await send(path, body, { 'x-github-event': 'push' })).status).toBe(200);
    },
  );

  it.each(['', ' ', '\uFEFF', '{', 'nul', '{"a":1}{"b":2}', '{"a":NaN}', `{"a":"${'\\ud800'}"`])(
    'is rejected when it is not valid JSON: %j',
    async (body) => {
      expect((await send('rest', body)).status).toBe(400);
    },
  );

  it('is cut, however often a template repeats it', async () => {
    expect((await send('greedy', JSON.stringify({ a: Array.from({ length: 20_000 }, (_, n) => n) }))).status).toBe(200);
    const [row] = (await server.client.call('webhooks.deliveries', { mapping: 'greedy', limit: 1 })).deliveries;
    expect([row?.message.length, (row?.senderId?.length ?? 0) <= 256, (row?.sessionKey?.length ?? 0) < 1_000]).toEqual([2_000, true, true]);
  });

  it('with lone surrogates and NUL everywhere is stored as text', async () => {
    const body = JSON.stringify({ a: 'x\ud800\u0000y', '\u0000': 1 });
    expect((await send('odd/A%20b/', body, { 'x-github-delivery': 'n\u00ff' })).status).toBe(200);
    const { deliveries } = await server.client.call('webhooks.deliveries', { mapping: 'odd/key' });
    expect(deliveries).toHaveLength(1);
    expect(deliveries[0]?.message.isWellFormed()).toBe(true);
  });
});

it.each(['my hook', 'Ünï', 'a?b', 'a#b', 'a\\b', 'tab\t'])('a mapping for an impossible path is rejected at start: %j', (path) => {
  expect(WebhooksConfig().safeParse({ mappings: [{ id: 'x', match: { path } }] }).error?.issues).toMatchObject([
    { path: ['mappings', 0, 'match', 'path'] },
  ]);
});

describe('rejected senders', () => {
  const body = '{"a":1}';
  const type = { 'content-type': 'application/json', 'content-length': String(body.length) };
  it.each([
    ['the signature twice, right and wrong', 'rest', { 'x-webhook-signature': [sign(body), 'f'.repeat(64)] }],
    ['the signature twice, both right', 'rest', { 'x-webhook-signature': [sign(body), sign(body)] }],
    ['two in one line', 'rest', { 'x-webhook-signature': `${sign(body)}, ${sign(body)}` }],
    ['a time twice', 'rest', { 'x-webhook-signature': sign(body), 'x-webhook-timestamp': ['1', String(Math.floor(Date.now() / 1000))] }],
    ['an empty secret', 'rest', { 'x-webhook-signature': sign(body, '') }],
    ['another hash', 'rest', { 'x-webhook-signature': `sha1=${createHmac('sha1', token).update(body).digest('hex')}` }],
    ['another hash under the right name', 'rest', { 'x-webhook-signature': `sha256=${createHmac('sha512', token).update(body).digest('hex')}` }],
    ['base64', 'rest', { 'x-webhook-signature': createHmac('sha256', token).update(body).digest('base64') }],
    ['the header of another preset', 'github', { 'x-webhook-signature': sign(body) }],
    ['the signature in the query', `rest?x-webhook-signature=${sign(body)}`, {}],
  ])('%s', async (_what, path, headers) => {
    expect(await raw(path, body, { ...type, ...headers })).toBe(401);
  });

  it.each(['none', 'rest/more', '..%2frest', '%2e%2e/rest', 'rest%00', 'rest%2f%2f', '%', 'x'.repeat(4_000)])(
    'an unmapped path: %s',
    async (path) => {
      expect([400, 404, 414, 431]).toContain(await raw(path, body, { ...type, 'x-webhook-signature': sign(body) }));
    },
  );

  it('names of inherited properties', async () => {
    expect((await send('sourced', '{"source":"__proto__"}')).status).toBe(200);
    for (const text of ['{}', '{"source":["__proto__"]}', '[]', 'null']) expect((await send('sourced', text)).status).toBe(404);
  });
});
