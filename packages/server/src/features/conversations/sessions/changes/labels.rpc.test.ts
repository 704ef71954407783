import type { Client } from '@gatehouse/client';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';

let server: TestServer;
let ada: Client;
beforeAll(async () => {
  server = await startTestServer({
    config: { agents: { default: { model: 'mock/mock-fast', operationModels: { condensation: { model: 'mock/mock-other' } } } } },
  });
  ada = await server.as(['rpc']);
});
afterAll(() => server[Symbol.asyncDispose]());

async function talk(name: string, message = 'How do tides work?') {
  const sessionKey = `ada:${name}`;
  const { conversationRef } = await ada.call('agent.execute', { message, sessionKey });
  return { sessionKey, conversationRef };
}
const listed = async (filter: object = {}) => (await ada.call('session.list', { limit: 200, ...filter })).sessions;
const keysOf = async (filter: object) => (await listed(filter)).map(({ sessionKey }) => sessionKey);
const find = async (key: string) => (await listed()).find(({ sessionKey }) => sessionKey === key);

test('a conversation is renamed, and gets its first words back', async () => {
  const heard = server.heard('session:updated');
  const { sessionKey, conversationRef } = await talk('renamed');
  expect(await find(sessionKey)).toMatchObject({ title: 'How do tides work?', source: 'chat' });
  expect(await ada.call('session.update', { sessionKey, title: '  “Tides\nand  moons” ' })).toMatchObject({ title: 'Tides and moons', named: true });
  await ada.call('agent.execute', { message: 'And the moon?', sessionKey });
  expect(await find(sessionKey)).toMatchObject({ title: 'Tides and moons', named: true, messageCount: 4 });
  const [hit] = (await ada.call('session.search', { query: 'moon' }).then((found) => ('results' in found ? found.results : []))) ?? [];
  expect(hit).toMatchObject({ title: 'Tides and moons' });
  const back = await ada.call('session.update', { sessionKey, title: null });
  expect(back).toMatchObject({ title: 'How do tides work?' });
  expect(back).not.toHaveProperty('named');
  expect(heard).toHaveLength(2);
  expect(heard[0]).toMatchObject({ conversationRef, sessionKey });
});

test('a title is cut at whole characters', async () => {
  const { sessionKey } = await talk('long');
  const { title = '' } = await ada.call('session.update', { sessionKey, title: '🌊'.repeat(100) });
  expect([...title]).toHaveLength(80);
  expect(title.isWellFormed()).toBe(true);
  await expect(ada.call('session.update', { sessionKey, title: ' \u200b ' })).rejects.toThrow('title: expected a visible character');
  await expect(ada.call('session.update', { sessionKey })).rejects.toThrow('title, shelf, tags: expected at least one of them');
});

test('conversations are pinned, archived and listed by where they are kept', async () => {
  const [kept, pinned, archived] = await Promise.all(['kept', 'pinned', 'archived'].map((name) => talk(name)));
  await ada.call('session.update', { sessionKey: pinned?.sessionKey ?? '', shelf: 'pinned' });
  await ada.call('session.update', { sessionKey: archived?.sessionKey ?? '', shelf: 'archived' });
  expect(await keysOf({ shelf: 'pinned' })).toEqual([pinned?.sessionKey]);
  expect(await keysOf({ shelf: 'archived' })).toEqual([archived?.sessionKey]);
  expect(await keysOf({ shelf: 'list' })).toContain(kept?.sessionKey);
  expect(await keysOf({})).toEqual(expect.arrayContaining([kept, pinned, archived].map((one) => one?.sessionKey)));
  await ada.call('session.update', { sessionKey: archived?.sessionKey ?? '', shelf: 'list' });
  expect(await find(archived?.sessionKey ?? '')).not.toHaveProperty('shelf');
});

test('conversations have tags, which are listed, counted and inherited by forks', async () => {
  const [first, second] = await Promise.all(['tagged', 'tagged-too'].map((name) => talk(name)));
  const sessionKey = first?.sessionKey ?? '';
  expect(await ada.call('session.update', { sessionKey, tags: ['Tides', 'a_b', ' Tides '] })).toMatchObject({ tags: ['Tides', 'a_b'] });
  await ada.call('session.update', { sessionKey: second?.sessionKey ?? '', tags: ['Tides', 'aXb'] });
  expect(await find(sessionKey)).toMatchObject({ tags: ['Tides', 'a_b'] });
  expect(await keysOf({ tag: 'a_b' })).toEqual([sessionKey]);
  expect(await keysOf({ tag: 'tides' })).toEqual([]);
  expect((await ada.call('session.list', { tag: 'Tides', limit: 1 })).total).toBe(2);
  expect((await ada.call('session.tags', {})).tags).toEqual([
    { tag: 'Tides', count: 2 },
    { tag: 'aXb', count: 1 },
    { tag: 'a_b', count: 1 },
  ]);
  const stranger = await server.as(['rpc']);
  expect(await stranger.call('session.tags', {})).toEqual({ tags: [] });
  const limited = await server.as(['admin'], { agents: ['gone'] });
  expect(await limited.call('session.tags', {})).toEqual({ tags: [] });
  const fork = await ada.call('session.fork', { sessionKey });
  expect((await ada.call('session.history', { conversationRef: fork.conversationRef })).session.tags).toEqual(['Tides', 'a_b']);
  const cleared = await ada.call('session.update', { sessionKey, tags: [] });
  expect(cleared).not.toHaveProperty('tags');
  for (const tags of [['two\nlines'], ['x'.repeat(41)], [' '], Array.from({ length: 11 }, (_, at) => `t${at}`)])
    await expect(ada.call('session.update', { sessionKey, tags })).rejects.toMatchObject({ code: 'invalid_params' });
});

test('conversations of the daemon are listed apart from chats', async () => {
  await talk('chat');
  const { jobId } = await ada.call('cron.add', {
    name: 'Tides',
    schedule: { kind: 'every', everyMs: 3_600_000 },
    payload: { kind: 'agent_turn', message: 'Look up the tides' },
  });
  await ada.call('cron.run', { jobId });
  await expect.poll(async () => (await listed({ source: 'job' })).length).toBe(1);
  expect(await keysOf({ source: 'job' })).toEqual([`cron:${jobId}`]);
  expect(await keysOf({ source: 'chat' })).not.toContain(`cron:${jobId}`);
});

test('a model writes a title once, and not over one by a person', async () => {
  const { sessionKey, conversationRef } = await talk('suggested');
  server.provider.queue({ text: ' "Tides and the moon" \n' });
  const seen = server.provider.requests.length;
  expect(await ada.call('session.suggest_title', { conversationRef })).toMatchObject({ title: 'Tides and the moon', stored: true });
  expect(server.provider.requests[seen]?.body).toMatchObject({ model: 'mock-other' });
  expect(JSON.stringify(server.provider.requests[seen]?.body)).toContain('How do tides work?');
  expect(await ada.call('session.suggest_title', { sessionKey })).toMatchObject({ title: 'Tides and the moon', stored: false });
  expect(server.provider.requests).toHaveLength(seen + 1);
  // Somebody names it while the model writes.
  const other = await talk('raced');
  const written = Promise.withResolvers<void>();
  server.provider.queue({ text: 'By the model', after: written.promise });
  const suggestion = ada.call('session.suggest_title', { sessionKey: other.sessionKey });
  await expect.poll(() => server.provider.requests.length).toBe(seen + 3);
  await ada.call('session.update', { sessionKey: other.sessionKey, title: 'By a person' });
  written.resolve();
  expect(await suggestion).toMatchObject({ stored: false });
  expect(await find(other.sessionKey)).toMatchObject({ title: 'By a person' });
});

test('a title from texts that are cleared meanwhile is not kept', async () => {
  const { sessionKey, conversationRef } = await talk('cleared');
  const written = Promise.withResolvers<void>();
  server.provider.queue({ text: 'A secret plan', after: written.promise });
  const seen = server.provider.requests.length;
  const suggestion = ada.call('session.suggest_title', { sessionKey });
  await expect.poll(() => server.provider.requests.length).toBe(seen + 1);
  await server.client.call('session.reset_conversation', { conversationRef });
  await ada.call('agent.execute', { message: 'Something else', sessionKey });
  written.resolve();
  expect(await suggestion).toMatchObject({ stored: false });
  expect(await find(sessionKey)).not.toHaveProperty('named');
});

test('a title of a conversation that is deleted meanwhile is not given to the next one of its key', async () => {
  const { sessionKey, conversationRef } = await talk('deleted');
  const written = Promise.withResolvers<void>();
  server.provider.queue({ text: 'A secret plan', after: written.promise });
  const seen = server.provider.requests.length;
  const suggestion = ada.call('session.suggest_title', { sessionKey });
  await expect.poll(() => server.provider.requests.length).toBe(seen + 1);
  await server.client.call('session.delete', { conversationRef });
  await ada.call('agent.execute', { message: 'Something else', sessionKey });
  written.resolve();
  expect(await suggestion).toMatchObject({ stored: false });
  expect(await find(sessionKey)).toMatchObject({ title: 'Something else' });
});

test('a title goes with the texts of a conversation', async () => {
  const { sessionKey, conversationRef } = await talk('erased');
  await ada.call('session.update', { sessionKey, title: 'A secret plan' });
  await server.client.call('session.reset_conversation', { conversationRef });
  expect(await find(sessionKey)).not.toHaveProperty('title');
  await expect(ada.call('session.suggest_title', { sessionKey })).rejects.toMatchObject({ code: 'precondition_failed' });
});

test('others can neither name nor archive a conversation', async () => {
  const { conversationRef } = await talk('foreign');
  const eve = await server.as(['rpc']);
  for (const call of [eve.call('session.update', { conversationRef, title: 'Mine' }), eve.call('session.suggest_title', { conversationRef })])
    await expect(call).rejects.toMatchObject({ code: 'not_found' });
  expect(await server.client.call('session.update', { conversationRef, shelf: 'archived' })).toMatchObject({ shelf: 'archived' });
});

test('a conversation in its first turn is named when that has ended', async () => {
  const answered = Promise.withResolvers<void>();
  server.provider.queue({ text: 'Done.', after: answered.promise });
  const turn = ada.call('agent.execute', { message: 'Hello', sessionKey: 'ada:first' });
  await expect.poll(() => find('ada:first')).toBeDefined();
  await expect(ada.call('session.update', { sessionKey: 'ada:first', title: 'First' })).rejects.toMatchObject({ code: 'precondition_failed' });
  answered.resolve();
  await turn;
  expect(await ada.call('session.update', { sessionKey: 'ada:first', title: 'First' })).toMatchObject({ title: 'First' });
});
