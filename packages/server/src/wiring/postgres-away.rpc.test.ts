import { startTestServer } from '@gatehouse/testkit';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { startTcpProxy } from '@gatehouse/testkit/tcp-proxy';
import { expect, test } from 'vitest';
import { openEvents } from '../gateway/testing/open-events.ts';
import { createTestDatabase } from '../kernel/db/postgres/testing/test-database.ts';
import { migrations } from '../transactions/registry.ts';

const messages = [{ role: 'user', content: 'hello' }];
const unreachable = 'The database server cannot be reached: nothing can be stored or read until it is back';
const noWrites = 'The database server accepts no writes: nothing can be stored until it does';

test.skipIf(findPostgres() === undefined)('while PostgreSQL is away, every transport says so and when to retry, and then continues', async () => {
  await using database = await createTestDatabase(migrations);
  await using proxy = await startTcpProxy(Number(new URL(database.url).port));
  const url = new URL(database.url);
  url.port = String(proxy.port);
  await using server = await startTestServer({
    config: {
      storage: { driver: 'postgres', url: url.href, poolSize: 4 },
      webhooks: { mappings: [{ id: 'build', messageTemplate: 'Build {{number}}', allowUnauthenticated: true }] },
    },
  });
  const { provider } = server;
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  async function ask(path: string, body?: object) {
    const answer = await fetch(`${server.url}${path}`, { headers, ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }) });
    return { path, status: answer.status, retryAfter: answer.headers.get('retry-after'), text: await answer.text() };
  }
  const rpc = (method: string, params: object = {}) => ask('/rpc', { jsonrpc: '2.0', id: 1, method, params });
  const healthy = async () => {
    const found = await Promise.all(['/health', '/health?ready', '/api/health'].map((path) => ask(path)));
    return found.map(({ status, text }) => [status, JSON.parse(text).status, JSON.parse(text).checks.storage]);
  };

  const answers = Promise.withResolvers<void>();
  provider.setAnswer(() => ({ text: 'an answer', after: answers.promise }));
  const streams = Promise.all([
    ask('/v1/chat/completions', { model: 'default', messages, stream: true }),
    ask('/v1/responses', { model: 'default', input: 'hello', stream: true }),
    ask('/v1/messages', { model: 'default', max_tokens: 10, messages, stream: true }),
    ask('/api/chat/stream', { message: 'hello', sessionKey: 'stream:away' }),
  ]);
  const turns = Promise.all([
    ask('/v1/chat/completions', { model: 'default', messages }),
    ask('/api/chat', { message: 'hello', sessionKey: 'json:away' }),
  ]);
  const turnCall = rpc('agent.execute', { message: 'hello', sessionKey: 'rpc:away' });
  await expect.poll(() => provider.requests.length).toBe(7);
  using events = await openEvents(server.url, server.token);
  using socket = server.socket();
  await socket.call('system.ping');

  proxy.refuse();
  answers.resolve();
  const [overHttp, overRpc, overSocket] = await Promise.all([
    Promise.all([
      ask('/v1/chat/completions', { model: 'default', messages }),
      ask('/v1/responses', { model: 'default', input: 'hello' }),
      ask('/v1/messages', { model: 'default', max_tokens: 10, messages }),
      ask('/api/chat', { message: 'hello' }),
      ask('/api/activity'),
      ask('/api/memory/search?q=hello'),
      ask('/hooks/build', { number: 1 }),
    ]),
    Promise.all([rpc('tokens.create', { scopes: ['api'] }), rpc('session.list'), rpc('session.search', { query: 'hello' })]),
    socket.call('tokens.create', { scopes: ['api'] }).catch((error: unknown) => error),
  ]);
  for (const { path, ...answer } of [...overHttp, ...(await turns)])
    expect(answer, path).toEqual({ status: 503, retryAfter: '2', text: expect.stringContaining(unreachable) });
  const error = { code: -32006, message: unreachable, data: { code: 'unavailable', retryAfterMs: 2_000 } };
  for (const { status, text } of [...overRpc, await turnCall]) expect([status, JSON.parse(text).error]).toEqual([200, error]);
  expect(overSocket).toMatchObject({ code: 'unavailable', message: unreachable });
  // Their headers are sent: the stream ends with the error, and not as complete.
  for (const { path, status, text } of await streams) {
    expect([status, text], path).toEqual([200, expect.stringContaining(unreachable)]);
    expect(text, path).not.toMatch(/"finish_reason":"|response\.completed|message_stop|event: done/);
  }
  // What needs no database is answered.
  for (const { path, status } of [await ask('/v1/models'), await ask('/metrics'), await rpc('agents.list')])
    expect([path, status]).toEqual([path, 200]);
  expect(await healthy()).toEqual(Array.from({ length: 3 }, () => [200, 'degraded', { status: 'degraded', detail: 'read-only' }]));

  // After some seconds new work is refused at once.
  await expect.poll(events.kinds).toContain('system:error');
  const refused = await Promise.all([
    ask('/v1/chat/completions', { model: 'default', messages, stream: true }),
    ask('/api/chat/stream', { message: 'hello' }),
  ]);
  for (const { path, ...answer } of refused) expect(answer, path).toEqual({ status: 503, retryAfter: '5', text: expect.stringContaining(noWrites) });
  expect(JSON.parse((await rpc('agent.execute', { message: 'hello' })).text).error).toMatchObject({ code: -32006, data: { retryAfterMs: 5_000 } });

  proxy.accept();
  expect((await rpc('tokens.create', { id: 'afterwards', scopes: ['api'] })).text).toContain('afterwards');
  await expect.poll(healthy).toEqual(Array.from({ length: 3 }, () => [200, 'ok', { status: 'ok' }]));
  expect(await ask('/v1/chat/completions', { model: 'default', messages, stream: true })).toMatchObject({
    status: 200,
    text: expect.stringContaining('[DONE]'),
  });
  // The stream of events has outlived it.
  await expect.poll(events.kinds).toContain('message:sent');
  expect(events.ended).toBe(false);
});
