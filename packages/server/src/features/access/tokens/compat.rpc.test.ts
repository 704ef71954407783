import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';

const configured = 'configured-secret-0123456789-abcdefgh';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: { gateway: { tokens: [{ id: 'editor', secret: configured, scopes: ['api'], compat: { fields: 'extended', tools: 'none' } }] } },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const tools = [{ type: 'function', function: { name: 'open_file', parameters: { type: 'object' } } }];

async function complete(token: string, more: object = { tools }): Promise<{ readonly status: number; readonly offered: readonly string[] }> {
  const before = server.provider.requests.length;
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'hi' }], ...more }),
  });
  await response.text();
  const sent = server.provider.requests.slice(before).at(-1)?.body as { tools?: { function: { name: string } }[] } | undefined;
  return { status: response.status, offered: (sent?.tools ?? []).map((tool) => tool.function.name) };
}

test('the compat of a token wins over gateway.compat, field by field', async () => {
  expect((await complete(server.token)).status).toBe(400);
  expect(await complete(configured)).toEqual({ status: 200, offered: ['open_file'] });

  const extended = await server.as(['api'], { compat: { fields: 'extended' } });
  const both = await complete(extended.token);
  expect(both.status).toBe(200);
  expect(both.offered).toContain('open_file');
  expect(both.offered.length).toBeGreaterThan(1);

  const alone = await server.as(['api'], { compat: { tools: 'none' } });
  expect((await complete(alone.token)).status).toBe(400);
  expect(await complete(alone.token, {})).toEqual({ status: 200, offered: [] });
});

test('the compat of a token is listed, and stays when its secret is replaced', async () => {
  const compat = { fields: 'extended', tools: 'none' } as const;
  const { tokenId } = await server.as(['api'], { compat });
  const { tokens } = await server.client.call('tokens.list');
  expect(tokens.find((one) => one.id === tokenId)).toMatchObject({ compat });
  expect(tokens.find((one) => one.id === 'editor')).toMatchObject({ compat });
  expect(tokens.find((one) => one.id === 'root')).not.toHaveProperty('compat');
  const rotated = await server.client.call('tokens.rotate', { id: tokenId });
  expect(rotated.compat).toEqual(compat);
  expect(await complete(rotated.secret)).toEqual({ status: 200, offered: ['open_file'] });
});
