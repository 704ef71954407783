import { ApiMemorySearch, ApiMemoryStats } from '@gatehouse/contract';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { helper: { model: 'mock/mock-fast' } } } });
  for (const content of ['The ferry leaves at six.', 'The ferry is white.', 'Coffee is in the kitchen.'])
    await server.client.call('memory.store', { content });
});
afterAll(() => server[Symbol.asyncDispose]());

async function get(path: string, token = server.token): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: await response.json() };
}

it('GET /api/memory/search finds what memory.search finds', async () => {
  const { status, body } = await get('/api/memory/search?q=when%20does%20the%20ferry%20leave%3F&limit=2');
  expect(status).toBe(200);
  const { results } = ApiMemorySearch().parse(body);
  expect(results.map(({ content }) => content)).toEqual(['The ferry leaves at six.', 'The ferry is white.']);
  expect({ results }).toEqual(await server.client.call('memory.search', { query: 'when does the ferry leave?', limit: 2 }));
  expect(ApiMemorySearch().parse((await get('/api/memory/search?q=ferry&agentId=helper')).body)).toEqual({ results: [] });
});

it('GET /api/memory/stats counts them', async () => {
  const { stats } = ApiMemoryStats().parse((await get('/api/memory/stats')).body);
  expect(stats).toMatchObject({ totalEntries: 3, byAgent: { default: 3 } });
  expect(ApiMemoryStats().parse((await get('/api/memory/stats?agentId=helper')).body).stats.totalEntries).toBe(0);
});

it('refuses missing and unknown query parameters, and tokens without the scope', async () => {
  for (const query of ['', '?q=', '?q=x&limit=0', '?q=x&limit=101', '?q=x&limit=ten', '?q=x&q=y', '?q=x&owner=me', '?q=x&agentId=%2e%2e'])
    expect((await get(`/api/memory/search${query}`)).status, query).toBe(400);
  expect((await get('/api/memory/stats?agentId=absent')).status).toBe(200);
  const confined = await server.as(['rpc'], { agents: ['helper'] });
  expect((await get('/api/memory/stats?agentId=default', confined.token)).status).toBe(404);
  expect((await get('/api/memory/search?q=ferry', confined.token)).status).toBe(404);
  const chatting = await server.as(['api']);
  expect((await get('/api/memory/search?q=ferry', chatting.token)).status).toBe(403);
  expect((await fetch(`${server.url}/api/memory/search?q=ferry`)).status).toBe(401);
});
