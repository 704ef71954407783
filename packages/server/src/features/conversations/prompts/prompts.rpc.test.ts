import { createClient } from '@gatehouse/client';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { default: { model: 'mock/mock-fast', instructions: 'Speak like a lighthouse keeper.' } } } });
});
afterAll(() => server[Symbol.asyncDispose]());

test('prompts belong to a person, are replaced by name, and are bounded', async () => {
  const callOf = async (id: string, person: string) =>
    createClient({ url: server.url, token: (await server.client.call('tokens.create', { id, person, scopes: ['rpc'] })).secret }).call;
  const [laptop, phone, bob] = [await callOf('laptop', 'ada'), await callOf('phone', 'ada'), await callOf('bob', 'bob')];
  await laptop('prompts.save', { name: 'weekly', text: 'Sum up the week.' });
  const saved = await phone('prompts.save', { name: 'weekly', text: 'Sum up\nthe week.' });
  expect(await laptop('prompts.list', {})).toEqual({ prompts: [saved] });
  for (const other of [bob, server.client.call]) {
    expect(await other('prompts.list', {})).toEqual({ prompts: [] });
    await expect(other('prompts.delete', { name: 'weekly' })).rejects.toMatchObject({ code: 'not_found' });
  }
  await expect(laptop('prompts.save', { name: 'two words', text: 'x' })).rejects.toMatchObject({ code: 'invalid_params' });
  await Promise.all(Array.from({ length: 199 }, (_, at) => laptop('prompts.save', { name: `p${at}`, text: 'x' })));
  await expect(laptop('prompts.save', { name: 'one-more', text: 'x' })).rejects.toMatchObject({ code: 'precondition_failed' });
  await laptop('prompts.save', { name: 'p1', text: 'Replaced' });
  expect(await laptop('prompts.delete', { name: 'p2' })).toEqual({ name: 'p2', deleted: true });
  const { prompts } = await phone('prompts.list', {});
  expect([prompts.length, prompts.find(({ name }) => name === 'p1')?.text]).toEqual([199, 'Replaced']);
});

test('the system prompt of an agent is what its model gets, for administrators of the agent', async () => {
  const shown = await server.client.call('agent.getPrompt', {});
  await server.client.turn({ message: 'Hello' });
  expect(server.provider.requests.at(-1)?.body).toMatchObject({
    messages: [{ role: 'system', content: shown.parts.map(({ text }) => text).join('\n\n') }, { role: 'user' }],
  });
  expect(shown).toMatchObject({ agentId: 'default', agentName: 'Gate', tools: expect.any(Array) });
  expect(shown.parts.some(({ text, tokens }) => text.includes('lighthouse') && tokens > 3)).toBe(true);
  const limited = await server.as(['admin'], { agents: ['other'] });
  await expect(limited.call('agent.getPrompt', { agentId: 'default' })).rejects.toMatchObject({ code: 'not_found' });
  const plain = await server.as(['rpc']);
  await expect(plain.call('agent.getPrompt', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
});
