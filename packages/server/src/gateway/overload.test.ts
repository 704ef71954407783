import { expect, it } from 'vitest';
import { post, startGateway, testTokens } from './testing/gateway-fixture.ts';

const reason = 'The server has more work than it can do in time';

it('under load new work is refused with a retry time; reading, stopping and operating continue', async () => {
  let overload: string | undefined = reason;
  await using fixture = await startGateway({ deps: { overload: () => overload } });
  const chat = () =>
    post(`${fixture.address}/v1/chat/completions`, testTokens.all, { model: 'local/test-model', messages: [{ role: 'user', content: 'hello' }] });
  const refused = await chat();
  expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([
    503,
    '5',
    { error: { message: reason, type: 'server_error', param: null, code: null } },
  ]);
  const call = async (method: string, params: object = {}) =>
    (await post(`${fixture.address}/rpc`, testTokens.all, { jsonrpc: '2.0', id: 1, method, params })).json();
  expect(await call('agent.execute', { message: 'hello' })).toMatchObject({
    error: { code: -32006, message: reason, data: { retryAfterMs: 5_000 } },
  });
  for (const method of ['system.ping', 'gateway.status', 'gateway.restart']) expect(await call(method), method).toHaveProperty('result');
  for (const path of ['/health', '/metrics', '/v1/models'])
    expect((await fetch(`${fixture.address}${path}`, { headers: { authorization: `Bearer ${testTokens.all}` } })).status, path).toBe(200);
  overload = undefined;
  expect((await chat()).status).toBe(200);
});
