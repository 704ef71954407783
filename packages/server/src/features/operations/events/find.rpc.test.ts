import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const clock = createStepClock();
let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ clock, config: { agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } } } });
});
afterEach(() => server[Symbol.asyncDispose]());

type Page = Parameters<TestServer['client']['activity']>[0];
const kinds = async (client: Pick<TestServer['client'], 'activity'>, page: Page) => (await client.activity(page)).entries.map(({ event }) => event);
/** Events are stored about a second after they happened. */
const stored = async (): Promise<void> => {
  clock.advance(1500);
  await expect.poll(async () => (await kinds(server.client, { kind: 'message:sent', since: 0 })).length).toBeGreaterThan(0);
};

test('stored events are found by kind, time and in pages', async () => {
  const beginMs = clock.now();
  for (let n = 0; n < 3; n += 1) {
    await server.client.call('agent.execute', { message: `message ${n}` });
    await stored();
  }
  await expect.poll(() => kinds(server.client, { kind: 'message:sent' })).toEqual(['message:sent', 'message:sent', 'message:sent']);
  const { entries } = await server.client.activity({ kind: 'message:received', limit: 2 });
  const [first] = entries;
  expect(entries.map(({ payload }) => payload)).toMatchObject([{ message: { text: 'message 1' } }, { message: { text: 'message 2' } }]);
  const earlier = await server.client.activity({ kind: 'message:received', before: first?.id });
  expect(earlier.entries.map(({ payload }) => payload)).toMatchObject([{ message: { text: 'message 0' } }]);
  expect(await kinds(server.client, { kind: 'message:sent', since: beginMs + 1500, until: beginMs + 3000 })).toEqual(['message:sent']);
  expect(await kinds(server.client, { until: beginMs })).not.toContain('message:sent');
  await expect(server.client.activity({ kind: 'nonsense' as 'message:sent' })).rejects.toMatchObject({ code: 'invalid_params' });
});

test('a caller finds what it may see, as in the stream', async () => {
  const ada = await server.as(['rpc', 'api']);
  const eve = await server.as(['rpc', 'api']);
  await ada.call('agent.execute', { message: 'of Ada' });
  await eve.call('agent.execute', { message: 'of Eve', agentId: 'other' });
  await server.client.call('agents.create', { agentId: 'third', config: {} });
  await stored();
  await expect.poll(async () => (await kinds(server.client, { since: 0 })).filter((kind) => kind === 'message:sent').length).toBe(2);
  const seen = await ada.activity({ since: 0 });
  expect(JSON.stringify(seen)).toContain('of Ada');
  expect(JSON.stringify(seen)).not.toContain('of Eve');
  expect(seen.entries.map(({ event }) => event)).toContain('agent:hot_added');
  expect(seen.entries.map(({ event }) => event)).not.toContain('audit:event');
  const limited = await server.as(['admin'], { agents: ['other'] });
  const agents = (await limited.activity({ since: 0 })).entries.map(({ payload }) => payload['agentId']);
  expect(agents).toContain('other');
  expect(agents).not.toContain('default');
});
