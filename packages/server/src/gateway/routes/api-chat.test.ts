import { ApiChatResult } from '@gatehouse/contract';
import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { allEvents, eventsOf, postApi, textOf } from '../testing/api-client.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { helper: { model: 'mock/mock-fast', name: 'Helper' } } } });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => server.provider.setAnswer(undefined));

const routesOf = ['/api/chat', '/api/chat/stream'];

describe('POST /api/chat', () => {
  it('runs a turn of origin api in the conversation of the token and answers with all of it', async () => {
    const heard = server.heard('message:received');
    server.provider.queue({ text: ['Good ', 'day'], usage: { input: 7, output: 2 } });
    const response = await postApi(server, '/api/chat', { message: 'Hello' });
    const result = ApiChatResult().parse(await response.json());
    expect(result).toMatchObject({
      response: 'Good day',
      tokensUsed: { input: 7, output: 2, total: 9 },
      costUsd: expect.any(Number),
      finishReason: 'stop',
      sessionKey: 'root:gateway',
    });
    expect(result).not.toHaveProperty('failure');
    expect(heard).toMatchObject([{ origin: 'api', conversationRef: result.conversationRef, traceId: result.traceId }]);
    const { messages } = await server.client.call('session.history', { conversationRef: result.conversationRef });
    expect(messages.map(({ content }) => content)).toEqual(['Hello', 'Good day']);
  });

  it('answers 200 with the partial text and the failure when a turn fails after some text', async () => {
    await using frail = await startTestServer();
    frail.provider.queue(
      { text: 'Let me look.', toolCalls: [{ id: 'c1', name: 'nothing', arguments: '{}' }] },
      { status: 401, error: { message: 'bad key' } },
    );
    const response = await postApi(frail, '/api/chat', { message: 'Hello' });
    expect([response.status, ApiChatResult().parse(await response.json())]).toEqual([
      200,
      expect.objectContaining({ response: 'Let me look.', finishReason: 'error', failure: expect.objectContaining({ kind: 'auth' }) }),
    ]);
  });
});

describe.each(routesOf)('the request of %s', (path) => {
  it('answers with the model that the request names, and refuses one that nobody offers', async () => {
    const answer = await postApi(server, path, { message: 'Hello', model: 'mock/mock-fast' });
    expect(answer.status).toBe(200);
    await answer.text();
    expect(server.provider.requests.at(-1)?.body).toMatchObject({ model: 'mock-fast' });
    const refused = await postApi(server, path, { message: 'Hello', model: 'mock/none' });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: expect.stringMatching(/^model: /), code: 'invalid_params' });
  });

  it('has an effort where its model offers one, and refuses it elsewhere', async () => {
    const refused = await postApi(server, path, { message: 'Hello', effort: 'high' });
    expect(await refused.json()).toMatchObject({ error: expect.stringMatching(/^effort: .*mock-fast/), code: 'invalid_params' });
    await server.client.call('config.set', { path: 'providers.mock.models[1].reasoning', value: true, confirm: true });
    const listed = await server.client.call('models.list', { provider: 'mock' });
    expect('models' in listed && listed.models.map(({ efforts }) => efforts)).toEqual([[], ['low', 'medium', 'high']]);
    expect((await server.client.call('session.status', {})).efforts).toEqual([]);
    const answer = await postApi(server, path, { message: 'Hello', model: 'mock/mock-other', effort: 'high' });
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
    expect(server.provider.requests.at(-1)?.body).toMatchObject({ model: 'mock-other', reasoning_effort: 'high' });
    const unknown = await postApi(server, path, { message: 'Hello', model: 'mock/mock-other', effort: 'extreme' });
    expect(unknown.status).toBe(400);
  });

  it.each(['en_US', 'xx-', '', 'de--CH', 'x'.repeat(10_240), 'e', 'not a tag', 'en-US-'])('refuses locale %j', async (locale) => {
    const response = await postApi(server, path, { message: 'Hello', locale });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: expect.stringMatching(/^locale: /), code: 'invalid_params' });
  });

  it('passes the agent the canonical form of a locale', async () => {
    await (await postApi(server, path, { message: 'Hello', locale: 'DE-ch' })).text();
    const system = JSON.stringify(server.provider.requests.at(-1)?.body);
    expect(system).toContain('de-CH');
    expect(system).not.toContain('DE-ch');
  });

  it.each<[string, object, string]>([
    ['no message', {}, 'message: required'],
    ['an empty message', { message: '' }, 'message: '],
    ['an unknown field', { message: 'Hello', temperature: 1 }, 'temperature: unknown field'],
    ['an unknown field below', { message: 'Hello', sessionKey: { userId: 'a', channelId: 'b', x: 1 } }, 'sessionKey.x: unknown field'],
    ['a number as agent', { message: 'Hello', agentId: 3 }, 'agentId: '],
    ['six attachments', { message: 'Hello', attachments: Array.from({ length: 6 }, () => ({ mediaId: 'a' })) }, 'attachments: '],
    [
      'a conversation named twice',
      { message: 'Hello', sessionKey: 'a:b', conversationRef: `cv_${'a'.repeat(43)}` },
      'conversationRef: expected without sessionKey',
    ],
    ['a path as attachment', { message: 'Hello', attachments: [{ mediaId: '../a' }] }, 'attachments.0.mediaId: '],
  ])('refuses %s by name', async (_name, body, words) => {
    const before = server.provider.served();
    const response = await postApi(server, path, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: expect.stringContaining(words), code: 'invalid_params' });
    expect(server.provider.served()).toBe(before);
  });

  it('answers 404, and no more, for an agent, a conversation or a media file that the token does not have', async () => {
    const limited = await server.as(['rpc'], { agents: ['helper'] });
    for (const body of [
      { message: 'Hello', agentId: 'nobody' },
      { message: 'Hello', agentId: 'default' },
      { message: 'Hello', conversationRef: `cv_${'a'.repeat(43)}` },
      { message: 'Hello', agentId: 'helper', attachments: [{ mediaId: 'nothing.png' }] },
    ]) {
      const response = await postApi(server, path, body, { authorization: `Bearer ${limited.token}` });
      expect([response.status, await response.json()]).toEqual([404, expect.objectContaining({ code: 'not_found' })]);
    }
  });

  it('names the missing attachment', async () => {
    const response = await postApi(server, path, { message: 'Hello', attachments: [{ mediaId: 'nothing.png' }] });
    expect([response.status, await response.json()]).toEqual([
      404,
      expect.objectContaining({ error: 'attachments.0.mediaId: media file not found', code: 'not_found' }),
    ]);
  });

  it('accepts tokens of scope rpc and above only', async () => {
    const api = await server.as(['api']);
    const refused = await postApi(server, path, { message: 'Hello' }, { authorization: `Bearer ${api.token}` });
    expect([refused.status, await refused.json()]).toEqual([403, expect.objectContaining({ code: 'insufficient_scope' })]);
    const admin = await server.as(['admin']);
    expect((await postApi(server, path, { message: 'Hello' }, { authorization: `Bearer ${admin.token}` })).status).toBe(200);
  });
});

describe('a turn that fails before any text', () => {
  it.each([
    [429, 'rate_limited', { status: 429, headers: { 'retry-after': '7' }, error: { message: 'slow down' } }],
    [503, 'unavailable', { status: 503, error: { message: 'busy' } }],
    [500, 'internal', { status: 401, error: { message: 'bad key' } }],
    [400, 'invalid_params', { status: 400, error: { message: 'too long', code: 'context_length_exceeded' } }],
  ] as const)('answers %i %s on both routes', async (status, code, answer) => {
    for (const path of routesOf) {
      await using failing = await startTestServer({ provider: { answer: () => answer } });
      const response = await postApi(failing, path, { message: 'Hello' });
      expect([response.status, await response.json()]).toEqual([
        status,
        { error: expect.any(String), code, requestId: response.headers.get('x-request-id') },
      ]);
      if (status === 429) expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });
});

describe('POST /api/chat/stream', () => {
  it('sends the new text only, then the answer of /api/chat', async () => {
    const pieces = ['He said "no"\n', 'grüezi \\ 🙂', '\u2028'];
    server.provider.queue({ text: pieces, usage: { input: 3, output: 4 } });
    const response = await postApi(server, '/api/chat/stream', { message: 'Hello', sessionKey: 'stream:a' });
    const events = await allEvents(response);
    expect(events.slice(0, -1)).toEqual(pieces.map((delta) => ({ event: 'token', data: { delta } })));
    const done = events.at(-1);
    expect(done?.event).toBe('done');
    expect(ApiChatResult().parse(done?.data)).toMatchObject({ response: pieces.join(''), tokensUsed: { input: 3, output: 4, total: 7 } });
    expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
  });

  it('ends with an error event when a turn fails after the first byte', async () => {
    await using frail = await startTestServer();
    frail.provider.queue({ text: ['half ', 'an answer'], breakAfter: { deltas: 1, by: 'cut' } });
    const response = await postApi(frail, '/api/chat/stream', { message: 'Hello' });
    expect(await allEvents(response)).toEqual([
      { event: 'token', data: { delta: 'half ' } },
      { event: 'error', data: { error: expect.any(String), code: 'unavailable', requestId: response.headers.get('x-request-id') } },
    ]);
  });

  it.each(['token=x', `token=${'t'.repeat(40)}&a=1`])('accepts no token from the query: ?%s', async (query) => {
    const withHeader = await postApi(server, `/api/chat/stream?${query}`, { message: 'Hello' });
    expect([withHeader.status, await withHeader.json()]).toEqual([401, expect.objectContaining({ code: 'unauthenticated' })]);
    const alone = await fetch(`${server.url}/api/chat/stream?token=${server.token}`, { method: 'POST', body: '{"message":"Hello"}' });
    expect(alone.status).toBe(401);
  });

  it('keeps a silent stream open with comments', async () => {
    const clock = createStepClock();
    await using stepped = await startTestServer({ clock });
    stepped.provider.queue({ text: ['a', 'b'], breakAfter: { deltas: 1, by: 'stall' } });
    const response = await postApi(stepped, '/api/chat/stream', { message: 'Hello' });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const readTo = async (words: string): Promise<void> => {
      while (!text.includes(words)) text += (await reader?.read())?.value ?? '';
    };
    await readTo('"a"');
    clock.advance(15_000);
    await readTo(': keep-alive\n\n');
    expect(text).toMatch(/^event: token\ndata: {"delta":"a"}\n\n: keep-alive\n\n$/);
    await reader?.cancel();
  });

  it('aborts the turn when the client disconnects, and closes the upstream socket within a second', async () => {
    const before = server.provider.aborted();
    server.provider.queue({ text: ['a', 'b'], breakAfter: { deltas: 1, by: 'stall' } });
    for await (const { event } of eventsOf(await postApi(server, '/api/chat/stream', { message: 'Hello', sessionKey: 'gone:a' }))) {
      expect(event).toBe('token');
      break;
    }
    await expect.poll(() => server.provider.aborted()).toBe(before + 1);
    expect(textOf(await allEvents(await postApi(server, '/api/chat/stream', { message: 'Again', sessionKey: 'gone:a' })))).not.toBe('');
  });

  it('sends a reader whose token is revoked the reason for the end of its stream', async () => {
    const brief = await server.as(['rpc']);
    server.provider.queue({ text: ['a', 'b'], breakAfter: { deltas: 1, by: 'stall' } });
    const response = await postApi(server, '/api/chat/stream', { message: 'Hello' }, { authorization: `Bearer ${brief.token}` });
    const events = eventsOf(response);
    expect((await events.next()).value).toMatchObject({ event: 'token' });
    await server.client.call('tokens.revoke', { id: brief.tokenId });
    expect((await events.next()).value).toEqual({
      event: 'error',
      data: {
        error: 'The token was revoked or has expired',
        code: 'unauthenticated',
        requestId: response.headers.get('x-request-id'),
      },
    });
    expect((await events.next()).done).toBe(true);
  });
});

it('has no chat below /api when gateway.web.enabled is false', async () => {
  await using plain = await startTestServer({ config: { gateway: { web: { enabled: false } } } });
  for (const path of routesOf) expect((await postApi(plain, path, { message: 'Hello' })).status).toBe(404);
});
