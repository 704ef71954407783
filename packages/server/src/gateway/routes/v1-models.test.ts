import { afterAll, beforeAll, expect, it } from 'vitest';
import { rawExchange, startGateway, testTokens } from '../testing/gateway-fixture.ts';

const limited = 'limited-secret-0123456789-abcdefghijk';
let fixture: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  fixture = await startGateway();
  fixture.putToken('limited', limited, ['api'], ['helper']);
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function get(path: string, token: string = testTokens.api): Promise<unknown[]> {
  const response = await fetch(fixture.address + path, { headers: { authorization: `Bearer ${token}` } });
  return [response.status, await response.json()];
}

it('lists the catalog and the agents', async () => {
  expect(await get('/v1/models')).toEqual([
    200,
    {
      object: 'list',
      data: [
        { id: 'local/test-model', object: 'model', created: 0, owned_by: 'local' },
        { id: 'local/org/second', object: 'model', created: 0, owned_by: 'local' },
        { id: 'agent/default', object: 'model', created: 0, owned_by: 'gatehouse' },
        { id: 'agent/helper', object: 'model', created: 0, owned_by: 'gatehouse' },
      ],
    },
  ]);
});

it('shows a token only what it can reach', async () => {
  expect(await get('/v1/models', limited)).toMatchObject([200, { data: [{ id: 'agent/helper' }] }]);
  expect(await get('/v1/models/agent/default', limited)).toMatchObject([404, { error: { message: 'Model not found' } }]);
});

it.each(['local/org/second', 'local%2Forg%2fsecond', 'local%2Forg/second'])('finds %s', async (id) => {
  expect(await get(`/v1/models/${id}`)).toMatchObject([200, { id: 'local/org/second' }]);
});

it.each(['nope', 'local%252Ftest-model', '%zz', '%00', 'local/test-model/', '..%2f..%2fhealth', '__proto__'])('answers 404 for %s', async (id) => {
  expect(await get(`/v1/models/${id}`)).toEqual([
    404,
    { error: { message: 'Model not found', type: 'not_found_error', param: 'model', code: null } },
  ]);
});

it('never matches another route (B11)', async () => {
  const { text } = await rawExchange(
    fixture.port,
    `GET /v1/models/../../health HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${testTokens.api}\r\nconnection: close\r\n\r\n`,
  );
  expect(text).toMatch(/^HTTP\/1\.1 404 /);
  expect(text).toContain('Model not found');
});
