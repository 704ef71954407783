import { createStepClock, type FakeAnswer, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { post } from '../gateway/testing/gateway-fixture.ts';

// The turns of a mapping are a separate caller: their failures open the breaker of the agent's model only for themselves.

let server: TestServer;
let others: FakeAnswer = { hang: true };
let hooks: FakeAnswer = { status: 500 };

beforeAll(async () => {
  server = await startTestServer({
    clock: createStepClock(),
    provider: { answer: ({ body }) => (JSON.stringify(body).includes('BAD') ? hooks : others) },
    config: {
      agents: { default: { model: 'mock/mock-fast', circuitBreaker: { failures: 2 } } },
      webhooks: { mappings: ['one', 'two'].map((id) => ({ id, messageTemplate: '{{text}}', sessionKey: '{{text}}' })) },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const asked = (word: string) => server.provider.requests.filter(({ body }) => JSON.stringify(body).includes(word)).length;
const deliver = async (mapping: string, text: string) =>
  (await server.client.call('webhooks.test', { mapping, payload: { text }, run: true })).deliveryId;
const stateOf = async (id: string | null) => {
  const found = (await server.client.call('webhooks.deliveries', {})).deliveries.find(({ deliveryId }) => deliveryId === id);
  return found?.waiting?.kind ?? found?.state;
};
/** A failing delivery, up to its wait for the model. */
async function fail(text: string): Promise<string | null> {
  const id = await deliver('one', `BAD ${text}`);
  await expect.poll(() => stateOf(id)).toBe('provider');
  return id;
}
const messages = (token: string, content: string) =>
  post(`${server.url}/v1/messages`, token, { model: 'agent/default', max_tokens: 100, messages: [{ role: 'user', content }] });

test('failing webhooks open the breaker for their mapping only: tokens, owners and other mappings of the agent reach the model', async () => {
  const { token } = await server.as(['api']);
  const failed = [await fail('first'), await fail('second'), await fail('third')];
  expect([asked('BAD first'), asked('BAD second'), asked('BAD third')]).toEqual([1, 1, 0]);

  // These hang until the server stops.
  for (const call of [messages(token, 'hello 1'), messages(server.token, 'hello 2'), deliver('two', 'hello 3')]) call.catch(() => undefined);
  await expect.poll(() => [asked('hello 1'), asked('hello 2'), asked('hello 3')]).toEqual([1, 1, 1]);
  failed.push(await fail('fourth'));
  expect(asked('BAD fourth')).toBe(0);

  // The next answer to any caller closes it and wakes waiting work.
  others = { text: 'fine' };
  hooks = { text: 'fine' };
  expect((await messages(token, 'hello 4')).status).toBe(200);
  await expect.poll(() => Promise.all(failed.map(stateOf))).toEqual(['done', 'done', 'done', 'done']);
});
