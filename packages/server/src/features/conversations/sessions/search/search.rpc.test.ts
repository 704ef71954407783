import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Result } from '@gatehouse/contract';
import { onPostgres, sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } } } });
});
afterAll(() => server[Symbol.asyncDispose]());

function hitsOf(found: Result<'session.search'>) {
  if (found.mode !== 'search') throw new Error('expected results');
  return found;
}

/** Returns how many messages are in the index. */
async function indexed(homeDir: string): Promise<number> {
  return Number((await sql(homeDir, 'SELECT sum(indexed_seq) AS indexed FROM conversation'))[0]?.['indexed']);
}

describe('session.search', () => {
  test('finds new messages over both transports, before and after they are indexed', async () => {
    using socket = server.socket();
    const { conversationRef, sessionKey } = await server.client.call('agent.execute', {
      message: 'The walrus deployed a harpsichord',
      sessionKey: { userId: 'ada', channelId: 'search' },
    });
    const expected = {
      mode: 'search',
      total: 1,
      truncated: false,
      results: [
        {
          conversationRef,
          sessionKey,
          agentId: 'default',
          title: 'The walrus deployed a harpsichord',
          seq: 1,
          role: 'user',
          snippet: 'The walrus deployed a harpsichord',
          marks: [
            { start: 4, end: 10 },
            { start: 11, end: 19 },
          ],
        },
      ],
    };
    for (const { call } of [server.client, socket]) {
      expect(await call('session.search', { query: 'deploying WALRUS' })).toMatchObject(expected);
    }
    await expect.poll(() => indexed(server.homeDir)).toBeGreaterThan(0);
    for (const { call } of [server.client, socket]) {
      expect(await call('session.search', { query: 'deploying WALRUS' })).toMatchObject(expected);
    }
  });

  test('is restricted to what the caller may see, and to agent, role and kind', async () => {
    const one = await server.as(['rpc']);
    const two = await server.as(['rpc']);
    const limited = await server.as(['*'], { agents: ['other'] });
    await one.call('agent.execute', { message: 'zebra in a house' });
    await one.call('agent.execute', { message: 'zebra in a group', sessionKey: 'ada:desk:group', agentId: 'other' });
    await two.call('agent.execute', { message: 'zebra of another' });
    const total = async (client: Pick<typeof one, 'call'>, params: object = {}) =>
      hitsOf(await client.call('session.search', { query: 'zebra', ...params })).total;
    expect(await total(server.client)).toBe(3);
    expect(await total(one)).toBe(2);
    expect(await total(two)).toBe(1);
    expect(await total(limited)).toBe(1);
    expect(await total(limited, { agentId: 'default' })).toBe(0);
    expect(await total(one, { agentId: 'other' })).toBe(1);
    expect(await total(one, { kind: 'group' })).toBe(1);
    expect(await total(one, { scope: 'assistant' })).toBe(0);
    expect(await total(one, { agentId: 'unknown' })).toBe(0);
  });

  test('without a query it lists the newest conversations of all agents', async () => {
    const one = await server.as(['rpc']);
    await one.call('agent.execute', { message: 'first' });
    await one.call('agent.execute', { message: 'second', agentId: 'other' });
    for (const query of [undefined, '', '   ']) {
      const recent = await one.call('session.search', { ...(query !== undefined && { query }) });
      if (recent.mode !== 'recent') throw new Error('expected the recent conversations');
      expect(recent.sessions.map(({ title }) => title)).toEqual(['second', 'first']);
      expect(recent.total).toBe(2);
    }
  });

  test.each(['???', '"', '*', 'part:', '(', 'NEAR('])('%j is not an error', async (query) => {
    expect(hitsOf(await server.client.call('session.search', { query }))).toMatchObject({ truncated: false });
  });

  test('invalid input is rejected by name', async () => {
    for (const params of [{ limit: 0 }, { limit: 51 }, { query: 'x'.repeat(1001) }, { scope: 'system' }, { agentId: 'No' }]) {
      await expect(server.client.call('session.search', params as never)).rejects.toMatchObject({
        code: 'invalid_params',
        issues: [{ path: Object.keys(params)[0] }],
      });
    }
  });

  test('erased or deleted messages are no longer found', async () => {
    const { client } = server;
    const said = await client.call('agent.execute', { message: 'ocelot one', sessionKey: 'ada:gone' });
    await client.call('agent.execute', { message: 'ocelot two', sessionKey: 'ada:erased' });
    await client.call('session.delete', { conversationRef: said.conversationRef });
    await client.call('session.reset_conversation', { sessionKey: 'ada:erased' });
    expect(hitsOf(await client.call('session.search', { query: 'ocelot' })).total).toBe(0);
  });
});

test('indexing resumes after a restart, including messages left by an earlier process', async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-index-'));
  try {
    const first = await startTestServer({ homeDir });
    await first.client.call('agent.execute', { message: 'an axolotl before the restart' });
    await first[Symbol.asyncDispose]();
    // Simulates the state after a crash.
    await sql(homeDir, onPostgres ? 'DELETE FROM message_fts' : `INSERT INTO message_fts (message_fts) VALUES ('delete-all')`);
    await sql(homeDir, 'UPDATE conversation SET indexed_seq = 0');
    await using again = await startTestServer({ homeDir });
    expect(hitsOf(await again.client.call('session.search', { query: 'axolotl' })).total).toBe(1);
    await expect.poll(() => indexed(homeDir)).toBe(2);
    expect(hitsOf(await again.client.call('session.search', { query: 'axolotl' })).total).toBe(1);
  } finally {
    await rm(homeDir, { recursive: true });
  }
});

test('session.list: titles, all agents, and the limits of a token', async () => {
  const one = await server.as(['rpc']);
  const limited = await server.as(['rpc', 'admin'], { agents: ['other'] });
  await one.call('agent.execute', { message: `A question \n that is long, ${'with words '.repeat(20)}` });
  await one.call('agent.execute', { message: 'elsewhere', agentId: 'other', sessionKey: 'ada:desk:group:7' });
  const titles = async (client: Pick<typeof one, 'call'>, params: object) =>
    (await client.call('session.list', params)).sessions.map(({ title, kind, agentId }) => [title, kind, agentId]);
  const long = 'A question that is long, with words with words with words with words with words…';
  expect(await titles(one, {})).toEqual([[long, 'dm', 'default']]);
  expect(await titles(one, { allAgents: true })).toEqual([
    ['elsewhere', 'group', 'other'],
    [long, 'dm', 'default'],
  ]);
  expect(await titles(one, { allAgents: true, kind: 'group' })).toEqual([['elsewhere', 'group', 'other']]);
  const seen = await limited.call('session.list', { allAgents: true, limit: 200 });
  expect(new Set(seen.sessions.map(({ agentId }) => agentId))).toEqual(new Set(['other']));
  expect(await limited.call('session.list', {})).toMatchObject({ sessions: [], total: 0 });
});
