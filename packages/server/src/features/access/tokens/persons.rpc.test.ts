import { createClient } from '@gatehouse/client';
import { type FakeAnswer, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';

type Call = TestServer['client']['call'];

const secretOf = (id: string) => `${id}-secret-0123456789-abcdefghijklmnop`;
const entry = (id: string, person?: string) => ({ id, secret: secretOf(id), scopes: ['rpc' as const], ...(person !== undefined && { person }) });
const agents = { default: { model: 'mock/mock-fast', tools: { profile: 'full' as const } } };

let servers: TestServer[] = [];
afterEach(async () => {
  for (const server of servers.toReversed()) await server[Symbol.asyncDispose]();
  servers = [];
});

async function start(...tokens: ReturnType<typeof entry>[]): Promise<TestServer> {
  const server = await startTestServer({ config: { agents, gateway: { tokens } } });
  servers.push(server);
  return server;
}

const callOf = ({ url }: TestServer, id: string): Call => createClient({ url, token: secretOf(id), retry: { retries: 0 } }).call;
const textsOf = async (call: Call, sessionKey: string) =>
  (await call('session.history', { sessionKey })).messages.filter(({ role }) => role === 'user').map(({ content }) => content);
const say = (call: Call, message: string, sessionKey = 'ada:desk') => call('agent.execute', { message, sessionKey });
const sessionsOf = async (call: Call) => (await call('session.list', {})).sessions.length;

/** Changes the person of a token in config.yaml. */
async function setPerson(server: TestServer, id: string, person: string | null): Promise<void> {
  const index = parse(server.configuration.readText()).gateway.tokens.findIndex((token: { id: string }) => token.id === id);
  await server.client.call('config.set', { path: `gateway.tokens[${index}].person`, value: person, confirm: true });
}

/** Starts a turn whose model does not answer yet. */
async function beginTurn(server: TestServer, call: Call, answer: FakeAnswer) {
  const before = server.provider.requests.length;
  server.provider.queue(answer);
  const turn = say(call, 'Take your time', 'ada:slow').then(
    ({ finishReason }) => finishReason,
    ({ code }) => code,
  );
  await vi.waitUntil(() => server.provider.requests.length > before, { timeout: 15_000, interval: 5 });
  return { turn };
}

describe('tokens of one person', () => {
  test('share conversations and memories, also with one made later and after a restart; nobody else sees them', async () => {
    const server = await start(entry('laptop', 'ada'), entry('tablet', 'bob'), entry('plain'));
    const laptop = callOf(server, 'laptop');
    const store = { toolCalls: [{ id: 'c1', name: 'memory_store', arguments: '{"content":"Ada keeps bees in Lisbon."}' }] };
    server.provider.queue(store, { text: 'Noted.' });
    const { conversationRef } = await say(laptop, 'From the laptop');
    const made = await server.client.call('tokens.create', { id: 'phone', scopes: ['rpc'], person: 'ada' });
    expect(made).toMatchObject({ person: 'ada' });
    const phone = createClient({ url: server.url, token: made.secret }).call;
    expect((await say(phone, 'From the phone')).conversationRef).toBe(conversationRef);
    expect(await textsOf(laptop, 'ada:desk')).toEqual(['From the laptop', 'From the phone']);
    const found = async (call: Call) => (await call('memory.search', { query: 'bees in Lisbon' })).results.map(({ content }) => content);
    expect(await found(phone)).toEqual(['Ada keeps bees in Lisbon.']);
    for (const other of ['tablet', 'plain'].map((id) => callOf(server, id))) {
      expect([await sessionsOf(other), await found(other)]).toEqual([0, []]);
      await expect(other('session.history', { conversationRef: conversationRef ?? '' })).rejects.toMatchObject({ code: 'not_found' });
      await say(other, 'Mine');
      expect(await textsOf(other, 'ada:desk')).toEqual(['Mine']);
    }
    const { tokens } = await server.client.call('tokens.list', {});
    expect(tokens.map(({ id, person }) => [id, person])).toEqual([
      ['laptop', 'ada'],
      ['phone', 'ada'],
      ['plain', undefined],
      ['root', undefined],
      ['tablet', 'bob'],
    ]);

    await server.server[Symbol.asyncDispose]();
    const next = await startTestServer({ homeDir: server.homeDir, config: { agents, gateway: { tokens: [entry('laptop', 'ada')] } } });
    await using _ = next;
    const again = createClient({ url: next.url, token: made.secret }).call;
    expect(await textsOf(again, 'ada:desk')).toEqual(['From the laptop', 'From the phone']);
    expect(await textsOf(callOf(next, 'laptop'), 'ada:desk')).toEqual(['From the laptop', 'From the phone']);
  });

  test('are revoked one by one: the work and the data of the others stay', async () => {
    const server = await start(entry('laptop', 'ada'), entry('phone', 'ada'));
    const [laptop, phone] = [callOf(server, 'laptop'), callOf(server, 'phone')];
    await say(laptop, 'Before');
    server.provider.queue(
      { toolCalls: [{ id: 'c1', name: 'sessions_spawn', arguments: '{"task":"Think"}' }] },
      { text: 'Started.' },
      { text: 'Slow.', delayMs: 1_500 },
    );
    await phone('agent.execute', { message: 'Delegate', sessionKey: 'ada:work' });
    const { turn: ofLaptop } = await beginTurn(server, laptop, { text: 'Late.', delayMs: 60_000 });
    await server.client.call('tokens.revoke', { id: 'laptop' });
    expect(await ofLaptop).not.toBe('stop');
    await expect(laptop('system.ping', {})).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(await textsOf(phone, 'ada:desk')).toEqual(['Before']);
    const states = (await phone('run.list', {})).runs.map(({ state }) => state);
    expect([states.length, states.includes('revoked')]).toEqual([1, false]);
    expect((await say(phone, 'After')).finishReason).toBe('stop');
  });

  test('of a token that was in use before keep what it had', async () => {
    const server = await start(entry('laptop'), entry('phone'));
    const [laptop, phone] = [callOf(server, 'laptop'), callOf(server, 'phone')];
    await say(laptop, 'Old');
    await setPerson(server, 'laptop', 'ada');
    await setPerson(server, 'phone', 'ada');
    await say(laptop, 'New');
    expect(await textsOf(phone, 'ada:desk')).toEqual(['Old', 'New']);
    const { entries } = await server.client.call('config.history', { limit: 1 });
    expect(entries).toHaveLength(1);
  });

  test('leave their person without what is the person’s, and have their own again', async () => {
    const server = await start(entry('laptop'), entry('phone', 'ada'), entry('tablet', 'bob'));
    const [laptop, phone, tablet] = [callOf(server, 'laptop'), callOf(server, 'phone'), callOf(server, 'tablet')];
    await say(laptop, 'My own');
    await say(phone, 'Of Ada');
    await say(tablet, 'Of Bob');
    await setPerson(server, 'laptop', 'ada');
    expect(await textsOf(laptop, 'ada:desk')).toEqual(['Of Ada']);
    await setPerson(server, 'laptop', 'bob');
    expect(await textsOf(laptop, 'ada:desk')).toEqual(['Of Bob']);
    await setPerson(server, 'laptop', null);
    expect(await textsOf(laptop, 'ada:desk')).toEqual(['My own']);

    // A token that gave a person what it owned does not keep it.
    await setPerson(server, 'laptop', 'eve');
    expect(await textsOf(laptop, 'ada:desk')).toEqual(['My own']);
    await setPerson(server, 'laptop', null);
    expect(await sessionsOf(laptop)).toBe(0);
    await say(laptop, 'From nothing');
    expect(await textsOf(laptop, 'ada:desk')).toEqual(['From nothing']);
    await server.client.call('tokens.create', { id: 'watch', scopes: ['rpc'], person: 'eve' });
    expect((await server.client.call('session.list', {})).sessions).toHaveLength(4);
  });

  test('a running turn ends as the one it began as, when its token goes to another person', async () => {
    const server = await start(entry('laptop', 'ada'), entry('phone', 'ada'));
    const [laptop, phone] = [callOf(server, 'laptop'), callOf(server, 'phone')];
    const { turn } = await beginTurn(server, laptop, { text: 'Done.', delayMs: 400 });
    await setPerson(server, 'laptop', 'bob');
    expect(await turn).toBe('stop');
    expect(await textsOf(phone, 'ada:slow')).toEqual(['Take your time']);
    expect(await sessionsOf(laptop)).toBe(0);
  });

  test('have the authority of their scopes, and the audit names the token', async () => {
    const server = await start(entry('laptop', 'ada'));
    const { secret } = await server.client.call('tokens.create', { id: 'boss', scopes: ['admin'], person: 'ada' });
    const boss = createClient({ url: server.url, token: secret, retry: { retries: 0 } }).call;
    await boss('agents.suspend', { agentId: 'default' });
    await expect(callOf(server, 'laptop')('agents.resume', { agentId: 'default' })).rejects.toMatchObject({ code: 'insufficient_scope' });
    const { rows } = await server.client.call('obs.audit.query', { actionType: 'agents.suspend' });
    expect(rows).toMatchObject([{ actor: 'person:ada', refs: { tokenId: 'boss' } }]);
    await expect(server.client.call('tokens.create', { scopes: ['rpc'], person: '../ada' })).rejects.toMatchObject({ code: 'invalid_params' });
  });
});
