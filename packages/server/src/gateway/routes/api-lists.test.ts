import { ApiAgents, ApiChannels, ApiChatHistory } from '@gatehouse/contract';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { helper: { model: 'mock/mock-other', name: 'Helper' } } } });
});
afterAll(() => server[Symbol.asyncDispose]());

async function get(path: string, token = server.token): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: await response.json() };
}

describe('GET /api/agents', () => {
  it('lists the agents with their model and whether they accept turns', async () => {
    await server.client.call('agents.create', { agentId: 'spare', config: { model: 'mock/mock-fast' } });
    await server.client.call('agents.suspend', { agentId: 'spare' });
    const { body } = await get('/api/agents');
    expect(ApiAgents().parse(body).agents).toEqual([
      { id: 'default', name: 'Gate', provider: 'mock', model: 'mock-fast', status: 'active' },
      { id: 'helper', name: 'Helper', provider: 'mock', model: 'mock-other', status: 'active' },
      { id: 'spare', name: 'Gate', provider: 'mock', model: 'mock-fast', status: 'suspended' },
    ]);
  });

  it('shows a token only those that it may reach', async () => {
    const limited = await server.as(['rpc'], { agents: ['helper'] });
    const { body } = await get('/api/agents', limited.token);
    expect(
      ApiAgents()
        .parse(body)
        .agents.map(({ id }) => id),
    ).toEqual(['helper']);
  });
});

it('GET /api/channels lists the built-in channel', async () => {
  const { body } = await get('/api/channels');
  expect(ApiChannels().parse(body)).toEqual({ channels: [{ type: 'gateway', name: 'gateway', enabled: true, status: 'connected' }] });
});

describe('GET /api/chat/history', () => {
  const history = async (query: string, token?: string) => ApiChatHistory().parse((await get(`/api/chat/history${query}`, token)).body);

  it('is empty before the first message, then what was said in the conversation of the token', async () => {
    const caller = await server.as(['rpc']);
    expect(await history('', caller.token)).toMatchObject({ messages: [], total: 0, hasMore: false, agentId: 'default' });
    server.provider.queue({ text: [], toolCalls: [{ id: 'c1', name: 'nothing', arguments: '{}' }] }, { text: 'Good day' });
    const before = Date.now();
    await caller.call('agent.execute', { message: 'Hello' });
    const { messages, total } = await history('', caller.token);
    expect([messages, total]).toEqual([
      [
        { role: 'user', content: 'Hello', timestamp: expect.any(Number) },
        { role: 'assistant', content: 'Good day', timestamp: expect.any(Number) },
      ],
      2,
    ]);
    expect(messages[0]?.timestamp).toBeGreaterThanOrEqual(before);
  });

  it('returns a page, and finds a conversation by its reference, key, channel or agent', async () => {
    const caller = await server.as(['rpc']);
    for (const message of ['one', 'two'])
      await caller.call('agent.execute', { message, agentId: 'helper', sessionKey: { userId: caller.tokenId, channelId: 'desk' } });
    const page = await history('?channelId=desk&agentId=helper&offset=1&limit=2', caller.token);
    expect(page).toMatchObject({ total: 4, offset: 1, limit: 2, hasMore: true, sessionKey: `${caller.tokenId}:desk`, agentId: 'helper' });
    expect(page.messages.map(({ role }) => role)).toEqual(['assistant', 'user']);
    expect(await history(`?conversationRef=${page.conversationRef}`, caller.token)).toMatchObject({ total: 4 });
    expect(await history(`?sessionKey=${encodeURIComponent(page.sessionKey)}&agentId=helper&offset=4`, caller.token)).toMatchObject({
      messages: [],
      hasMore: false,
    });
    expect(await history('?agentId=helper', caller.token)).toMatchObject({ total: 0, agentId: 'helper' });
  });

  it('answers foreign and unknown agents alike', async () => {
    const [mine, other] = [await server.as(['rpc']), await server.as(['rpc'], { agents: ['helper'] })];
    const { conversationRef } = await mine.call('agent.execute', { message: 'Secret', sessionKey: 'a:b' });
    for (const query of [
      `conversationRef=${conversationRef}`,
      `conversationRef=cv_${'a'.repeat(43)}`,
      'sessionKey=a:b',
      'channelId=none',
      'agentId=default',
      'agentId=nobody',
    ])
      expect(await get(`/api/chat/history?${query}`, other.token)).toMatchObject({ status: 404, body: { code: 'not_found' } });
  });
});

describe('the query of the lists', () => {
  it.each([
    ['/api/agents?x=1', 'x: unknown field'],
    ['/api/channels?limit=1', 'limit: unknown field'],
    ['/api/chat/history?page=1', 'page: unknown field'],
    ['/api/chat/history?limit=0', 'limit: expected a whole number from 1 to 200'],
    ['/api/chat/history?limit=201', 'limit: expected a whole number from 1 to 200'],
    ['/api/chat/history?limit=', 'limit: expected a whole number'],
    ['/api/chat/history?limit=1e1', 'limit: expected a whole number'],
    ['/api/chat/history?offset=-1', 'offset: expected a whole number'],
    ['/api/chat/history?limit=1&limit=2', 'limit: expected once'],
    ['/api/chat/history?agentId=A%20B', 'agentId: expected 1 to 64 lower-case letters'],
    ['/api/chat/history?conversationRef=x', 'conversationRef: expected cv_'],
    ['/api/chat/history?sessionKey=x', 'sessionKey: '],
    ['/api/chat/history?channelId=a&sessionKey=a:b', 'channelId: expected without sessionKey and conversationRef'],
    ['/api/chat/history?__proto__=1', '__proto__'],
  ])('%s is refused: %s', async (path, words) => {
    expect(await get(path)).toMatchObject({ status: 400, body: { error: expect.stringContaining(words), code: 'invalid_params' } });
  });
});
