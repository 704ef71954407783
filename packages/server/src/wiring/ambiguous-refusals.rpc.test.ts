import { createStepClock, type FakeAnswer, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, expect, test } from 'vitest';
import { post } from '../gateway/testing/gateway-fixture.ts';

// A provider's reaction to one caller's input pauses the model for nobody else; an account without credit is not called all the time.

let server: TestServer;
afterEach(() => server[Symbol.asyncDispose]());

const body = (error: object) => ({ body: JSON.stringify({ error }) });
const flagged: FakeAnswer = {
  status: 403,
  ...body({ code: 403, message: 'mock requires moderation. Your input was flagged.', metadata: { reasons: ['x'], flagged_input: 'FLAG' } }),
};
const plain403: FakeAnswer = { status: 403, error: { message: 'Forbidden' } };
const noMoney: FakeAnswer = { status: 402, ...body({ code: 402, message: 'This request requires more credits, or fewer max_tokens.' }) };
const echo = (words: string): FakeAnswer => ({
  status: 400,
  body: JSON.stringify({ message: JSON.stringify([{ type: 'missing', msg: 'Field required', input: words }]), type: 'BadRequestError', code: 400 }),
});

/** `fault` answers everything that says BAD, or everything once `isDown`. */
async function start(fault: FakeAnswer, fallbacks: readonly string[] = []) {
  const clock = createStepClock();
  const state = { isDown: false };
  server = await startTestServer({
    clock,
    provider: { answer: ({ body: sent }) => (state.isDown || JSON.stringify(sent).includes('BAD') ? fault : { text: 'fine' }) },
    config: {
      agents: { default: { model: 'mock/mock-fast', fallbackModels: [...fallbacks] } },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: 'one' }] },
    },
  });
  const client = async (id: string) => {
    const { secret } = await server.client.call('tokens.create', { id, scopes: ['api'] });
    return async (content: string, model = 'mock/mock-fast') => {
      const before = server.provider.served();
      const response = await post(`${server.url}/v1/chat/completions`, secret, { model, messages: [{ role: 'user', content }] });
      const { status, headers } = response;
      return { status, reason: headers.get('x-gatehouse-error'), after: headers.get('retry-after'), asked: server.provider.served() - before };
    };
  };
  return { clock, state, client };
}

test('a provider’s complaint about one request refuses that request, however often it recurs, and other callers are served', async () => {
  const { client } = await start(noMoney);
  const [ada, bob] = [await client('ada'), await client('bob')];
  const faults = {
    'a moderation 403': flagged,
    'a 403 without a reason': plain403,
    'a 402 of one request': noMoney,
    'a 400 that repeats "API key"': echo('how do I set my invalid API key?'),
    'a 400 that repeats "billing"': echo('insufficient quota: write the billing module'),
  };
  for (const [title, fault] of Object.entries(faults)) {
    server.provider.setAnswer(({ body: sent }) => (JSON.stringify(sent).includes('BAD') ? fault : { text: 'fine' }));
    for (let n = 0; n < 6; n += 1) {
      const refused = await ada('BAD');
      if (n < 3) expect(refused, title).toMatchObject({ status: 400, reason: 'upstream_rejected', after: null, asked: 1 });
    }
    expect(await server.client.call('providers.list', {}), title).toMatchObject({ providers: [{ state: 'ok' }] });
    expect(await bob('hello'), title).toMatchObject({ status: 200, asked: 1 });
    expect(await ada('hello'), title).toMatchObject({ status: 200, asked: 1 });
  }
});

test('an account without credit is called once a minute by each caller, is shown to owners, and recovers with any success', async () => {
  const { clock, state, client } = await start(noMoney);
  const [ada, bob] = [await client('ada'), await client('bob')];
  state.isDown = true;
  for (let n = 0; n < 3; n += 1) expect(await ada('hello')).toMatchObject({ status: 400, asked: 1 });
  expect(await ada('hello')).toMatchObject({ status: 500, after: '60', asked: 0 });
  expect(await bob('hello')).toMatchObject({ status: 400, asked: 1 });
  expect(await server.client.call('providers.list', {})).toMatchObject({
    providers: [{ state: 'refused', cause: expect.stringContaining('more credits') }],
  });
  clock.advance(60_000);
  expect(await ada('hello')).toMatchObject({ status: 400, asked: 1 });
  expect(await ada('hello')).toMatchObject({ status: 500, after: '60', asked: 0 });
  state.isDown = false;
  expect(await bob('hello')).toMatchObject({ status: 200, asked: 1 });
  expect(await ada('hello')).toMatchObject({ status: 200, asked: 1 });
  expect(await server.client.call('providers.list', {})).toMatchObject({ providers: [{ state: 'ok' }] });
});

test('accepted work waits for an account without credit, and "try now" ends the pause of its caller', async () => {
  const { clock, state } = await start(noMoney);
  state.isDown = true;
  const send = async () => (await server.client.call('webhooks.test', { mapping: 'hook', payload: { text: 'hook' }, run: true })).deliveryId;
  const ids = [await send(), await send(), await send(), await send()];
  const states = async () =>
    (await server.client.call('webhooks.deliveries', {})).deliveries.map(({ state: at, waiting }) => `${at} ${waiting?.kind ?? ''}`.trim());
  await expect.poll(states).toEqual(ids.map(() => 'accepted provider'));
  expect(server.provider.served()).toBe(3);
  state.isDown = false;
  await server.client.call('providers.retry', { provider: 'mock' });
  await expect.poll(async () => (clock.advance(1_000), states())).toEqual(ids.map(() => 'done'));
});

test('an ambiguous refusal tries the fallback models', async () => {
  const { client } = await start(noMoney, ['mock/mock-other']);
  const ada = await client('ada');
  server.provider.setAnswer(({ body: sent }) => (JSON.stringify(sent).includes('mock-other') ? { text: 'fine' } : noMoney));
  expect(await ada('hello', 'agent/default')).toMatchObject({ status: 200, asked: 2 });
});
