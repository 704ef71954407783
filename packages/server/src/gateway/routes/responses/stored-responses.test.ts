import { ResponseDeleted, ResponseObject, V1Error } from '@gatehouse/contract';
import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { responsesClient } from '../../testing/responses-client.ts';

const dayMs = 86_400_000;
const clock = createStepClock();

let server: TestServer;
let client: ReturnType<typeof responsesClient>;
beforeAll(async () => {
  server = await startTestServer({ clock });
  client = responsesClient(server.url, server.token);
});
afterAll(() => server[Symbol.asyncDispose]());

const model = 'mock/mock-fast';
const answer = async (response: Response) => [response.status, V1Error().parse(await response.json()).error.type];

it('returns the exact answer, and nothing after it was deleted', async () => {
  const metadata = { topic: 'numbers' };
  const made = await client.create({ model, input: 'one', metadata });
  const { final } = await client.stream({ model, input: 'two' });
  expect(made.metadata).toEqual(metadata);
  for (const response of [made, final]) expect(ResponseObject().parse(await (await client.get(response.id)).json())).toEqual(response);
  const deleted = await client.delete(made.id);
  expect([deleted.status, ResponseDeleted().parse(await deleted.json())]).toEqual([200, { id: made.id, object: 'response', deleted: true }]);
  expect(await answer(await client.get(made.id))).toEqual([404, 'not_found_error']);
  expect(await answer(await client.delete(made.id))).toEqual([404, 'not_found_error']);
  expect((await client.get(final.id)).status).toBe(200);
});

it('stores nothing on request, nor a failed response', async () => {
  const made = await client.create({ model, input: 'one', store: false });
  expect(await answer(await client.get(made.id))).toEqual([404, 'not_found_error']);
  server.provider.queue({ text: ['half ', 'of it'], breakAfter: { deltas: 1, by: 'error' } });
  const { final } = await client.stream({ model, input: 'two' });
  expect([final.status, final.store]).toEqual(['failed', false]);
  expect(await answer(await client.get(final.id))).toEqual([404, 'not_found_error']);
});

it('answers other callers as if it did not exist', async () => {
  const made = await client.create({ model, input: 'secret' });
  const other = await server.as(['api']);
  const stranger = responsesClient(server.url, other.token);
  const unknown = made.id.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
  for (const id of [made.id, unknown]) {
    expect(await answer(await stranger.get(id))).toEqual([404, 'not_found_error']);
    expect(await answer(await stranger.delete(id))).toEqual([404, 'not_found_error']);
    const followed = await stranger.send({ model, input: 'continue', previous_response_id: id });
    const { error } = V1Error().parse(await followed.json());
    expect([followed.status, error]).toEqual([
      404,
      { message: `Previous response not found: ${id}`, type: 'not_found_error', param: 'previous_response_id', code: null },
    ]);
  }
  const referred = await stranger.send({ model, input: [{ type: 'item_reference', id: made.output[0]?.id }] });
  expect([referred.status, V1Error().parse(await referred.json()).error.param]).toEqual([404, 'input.0']);
  expect((await client.get(made.id)).status).toBe(200);
});

it('does not continue a history with a deleted part', async () => {
  const first = await client.create({ model, input: 'one' });
  const second = await client.create({ model, input: 'two', previous_response_id: first.id });
  await client.delete(first.id);
  const followed = await client.send({ model, input: 'three', previous_response_id: second.id });
  expect(await answer(followed)).toEqual([404, 'not_found_error']);
});

it('keeps a response for 30 days unless a later one continues it', async () => {
  const old = await client.create({ model, input: 'one' });
  const alone = await client.create({ model, input: 'lost' });
  clock.leap(29 * dayMs);
  const later = await client.create({ model, input: 'two', previous_response_id: old.id });
  clock.leap(dayMs + 1);
  for (const id of [old.id, alone.id]) expect(await answer(await client.get(id))).toEqual([404, 'not_found_error']);
  clock.leap(dayMs);
  server.provider.requests.length = 0;
  await client.create({ model, input: 'three', previous_response_id: later.id });
  expect(server.provider.requests.at(-1)?.body).toMatchObject({
    messages: expect.arrayContaining([
      { role: 'user', content: 'one' },
      { role: 'user', content: 'two' },
      { role: 'user', content: 'three' },
    ]),
  });
});
