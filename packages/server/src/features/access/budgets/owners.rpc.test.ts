import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@gatehouse/client';
import { copyHome, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, describe, expect, test } from 'vitest';

type Call = TestServer['client']['call'];
type Tokens = NonNullable<NonNullable<Parameters<typeof startTestServer>[0]>['config']>['gateway'];
type Entry = NonNullable<NonNullable<Tokens>['tokens']>[number];

const secretOf = (id: string) => `${id}-secret-0123456789-abcdefghijklmnop`;
const entry = (id: string, more: Partial<Entry> = {}): Entry => ({ id, secret: secretOf(id), scopes: ['rpc', 'api'], ...more });
/** One turn, and less than the question of another one. */
const tight = { perDayUsd: 0.0201 };
const agents = { default: { model: 'mock/mock-fast', maxTokens: 5_000 } };
/** One turn costs about two cents. */
const answer = { text: 'Yes.', usage: { input: 10_000, output: 5_000 } };

let servers: TestServer[] = [];
afterEach(async () => {
  for (const server of servers.toReversed()) await server[Symbol.asyncDispose]();
  servers = [];
});

async function start(tokens: Entry[], persons: Record<string, object> = {}, homeDir?: string): Promise<TestServer> {
  const server = await startTestServer({ config: { agents, persons, gateway: { tokens } }, ...(homeDir !== undefined && { homeDir }) });
  servers.push(server);
  server.provider.setAnswer(() => answer);
  return server;
}

const callOf = ({ url }: TestServer, id: string): Call => createClient({ url, token: secretOf(id), retry: { retries: 0 } }).call;
const say = async (call: Call) => (await call('agent.execute', { message: 'Hello' })).finishReason;
const capsOf = async (call: Call) => (await call('capabilities.introspect', {})).budgets.filter(({ scope }) => scope !== 'agent');

describe('the budget of a person', () => {
  test('is one for all its tokens, and names whose it is and when it frees; others are not affected', async () => {
    const server = await start([entry('laptop', { person: 'ada' }), entry('phone', { person: 'ada' }), entry('tablet', { person: 'bob' })], {
      ada: { budgets: tight },
    });
    const [laptop, phone, tablet] = [callOf(server, 'laptop'), callOf(server, 'phone'), callOf(server, 'tablet')];
    expect(await say(laptop)).toBe('stop');
    expect(await say(phone)).toBe('budget_exceeded');
    expect(await say(tablet)).toBe('stop');
    expect(await capsOf(phone)).toMatchObject([{ cap: 'perDayUsd', scope: 'person', limit: 0.0201, used: 0.02, resetsInMs: expect.any(Number) }]);
    expect(await capsOf(tablet)).toEqual([]);
    const refused = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secretOf('phone')}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, expect.closeTo(86_400, -4)]);
    expect(await refused.text()).toMatch(/persons\.ada\.budgets\.perDayUsd of 0\.0201 USD .*try again in \d+ s/);
  });

  test('counts over a kill, and from what was used before it was set; a higher one applies at once', async () => {
    const crashed = await mkdtemp(join(tmpdir(), 'gatehouse-crashed-'));
    try {
      const tokens = [entry('laptop', { person: 'ada' }), entry('phone', { person: 'ada' })];
      const server = await start(tokens);
      expect(await say(callOf(server, 'laptop'))).toBe('stop');
      await server.client.call('config.set', { path: 'persons.ada', value: { budgets: tight } });
      expect(await say(callOf(server, 'phone'))).toBe('budget_exceeded');
      await copyHome(server.homeDir, crashed);
      const next = await start(tokens, { ada: { budgets: tight } }, crashed);
      expect(await say(callOf(next, 'phone'))).toBe('budget_exceeded');
      await next.client.call('config.set', { path: 'persons.ada.budgets.perDayUsd', value: 1 });
      expect(await say(callOf(next, 'phone'))).toBe('stop');
      await next.client.call('config.set', { path: 'persons', value: null });
      expect(await capsOf(callOf(next, 'phone'))).toEqual([]);
      await servers.pop()?.[Symbol.asyncDispose]();
    } finally {
      await rm(crashed, { recursive: true, force: true });
    }
  });

  test('is not exceeded by turns of its tokens at the same time', async () => {
    // Less than the longest answer: the first turn may use all of it.
    const budgets = { perDayUsd: 0.01 };
    const server = await start([entry('laptop', { person: 'ada' }), entry('phone', { person: 'ada' })], { ada: { budgets } });
    const answered = Promise.withResolvers<void>();
    server.provider.setAnswer(() => ({ text: 'Yes.', usage: { input: 1_000, output: 100 }, after: answered.promise }));
    const turns = [say(callOf(server, 'laptop')), say(callOf(server, 'phone'))];
    const first = await Promise.race(turns);
    answered.resolve();
    expect([first, (await Promise.all(turns)).toSorted()]).toEqual(['budget_exceeded', ['budget_exceeded', 'stop']]);
    expect(await capsOf(callOf(server, 'phone'))).toMatchObject([{ used: 0.0012, reserved: 0 }]);
  });
});

describe('the budget of a token', () => {
  test('is that of a token of the file, or of one that was created, and is listed', async () => {
    const server = await start([entry('ci', { budgets: tight }), entry('ops')]);
    const { secret, budgets } = await server.client.call('tokens.create', { id: 'made', scopes: ['rpc'], budgets: tight });
    expect(budgets).toEqual(tight);
    const made = createClient({ url: server.url, token: secret, retry: { retries: 0 } }).call;
    for (const call of [callOf(server, 'ci'), made]) {
      expect([await say(call), await say(call)]).toEqual(['stop', 'budget_exceeded']);
      expect(await capsOf(call)).toMatchObject([{ scope: 'token', cap: 'perDayUsd' }]);
    }
    expect([await say(callOf(server, 'ops')), await say(callOf(server, 'ops'))]).toEqual(['stop', 'stop']);
    expect((await server.client.call('tokens.list', {})).tokens.find(({ id }) => id === 'made')).toMatchObject({ budgets: tight });
    const error = await made('providers.list', {}).catch(({ code }: { code: string }) => code);
    expect(error).toBe('insufficient_scope');
  });

  test('is refused where the token has a person, whose budget counts', async () => {
    const server = await start([entry('ci')]);
    await expect(server.client.call('tokens.create', { scopes: ['rpc'], person: 'ada', budgets: tight })).rejects.toMatchObject({
      code: 'invalid_params',
      message: expect.stringContaining('persons.ada.budgets'),
    });
    await server.client.call('config.set', { path: 'gateway.tokens[1].budgets', value: tight, confirm: true });
    await expect(server.client.call('config.set', { path: 'gateway.tokens[1].person', value: 'ada', confirm: true })).rejects.toMatchObject({
      code: 'invalid_params',
      message: expect.stringContaining('persons.ada.budgets'),
    });
  });
});

describe('limits of requests', () => {
  test('of a person count its tokens together, those of a token alone; each refusal names its limit and when it frees', async () => {
    const server = await start(
      [entry('laptop', { person: 'ada' }), entry('phone', { person: 'ada', rateLimit: { maxRequests: 2 } }), entry('tablet')],
      { ada: { rateLimit: { maxRequests: 4 } } },
    );
    const [laptop, phone, tablet] = [callOf(server, 'laptop'), callOf(server, 'phone'), callOf(server, 'tablet')];
    const outcomes = async (call: Call, times: number) => {
      const found: string[] = [];
      for (let at = 0; at < times; at += 1)
        found.push(
          await call('system.ping', {}).then(
            () => 'ok',
            ({ code, message }: { code: string; message: string }) => `${code} ${/persons\S+|gateway\.tokens\S+/.exec(message)?.[0]}`,
          ),
        );
      return found;
    };
    expect(await outcomes(phone, 3)).toEqual(['ok', 'ok', 'rate_limited gateway.tokens.phone.rateLimit']);
    expect(await outcomes(laptop, 3)).toEqual(['ok', 'ok', 'rate_limited persons.ada.rateLimit']);
    expect(await outcomes(tablet, 6)).toEqual(Array(6).fill('ok'));
    const refused = await fetch(`${server.url}/api/agents`, { headers: { authorization: `Bearer ${secretOf('laptop')}` } });
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, expect.closeTo(60, -1)]);
    const socket = server.socket(secretOf('tablet'));
    await socket.call('system.ping', {});
    await server.client.call('config.set', { path: 'gateway.tokens[3].rateLimit', value: { maxRequests: 1 }, confirm: true });
    socket.close();
    const again = server.socket(secretOf('tablet'));
    await expect(again.call('system.ping', {})).rejects.toMatchObject({ code: 'rate_limited' });
    again.close();
    await server.client.call('config.set', { path: 'persons.ada.rateLimit.maxRequests', value: 100 });
    expect(await outcomes(laptop, 2)).toEqual(['ok', 'ok']);
  });
});
