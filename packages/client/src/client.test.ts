import { expect, test } from 'vitest';
import { createClient } from './client.ts';
import {
  AuthenticationError,
  ConnectionError,
  InvalidParamsError,
  NotFoundError,
  PermissionError,
  RateLimitError,
  ServerError,
  TimeoutError,
} from './errors.ts';
import { answer, type GatewayScript, type SeenRequest, startGateway } from './testing/gateway.ts';

const token = 'a-token-of-more-than-thirty-two-characters';
const quick = { initialDelayMs: 1, maxDelayMs: 5 };

async function open(script: NonNullable<GatewayScript['http']>) {
  const gateway = await startGateway({ http: script });
  return {
    gateway,
    client: createClient({ url: `${gateway.url}/`, token, retry: quick }),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

function result(request: SeenRequest, value: unknown) {
  return { jsonrpc: '2.0', id: JSON.parse(request.body).id, result: value };
}

function failure(request: SeenRequest, code: number, message: string, data?: object) {
  return { jsonrpc: '2.0', id: JSON.parse(request.body).id, error: { code, message, data } };
}

test('a call sends a JSON-RPC request with the token and returns the result', async () => {
  await using session = await open((request) => result(request, { pong: true, ts: 5 }));
  const pong = await session.client.call('system.ping');
  expect(pong.ts).toBe(5);
  const [request] = session.gateway.requests;
  expect(request).toMatchObject({ method: 'POST', path: '/rpc', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } });
  expect(JSON.parse(request?.body ?? '')).toEqual({ jsonrpc: '2.0', id: 1, method: 'system.ping', params: {} });
});

test('an error for wrong parameters has the issues and the request id', async () => {
  const issues = [{ path: 'limit', message: 'expected at most 200' }];
  await using session = await open((request) => failure(request, -32602, 'Invalid params', { code: 'invalid_params', issues, requestId: 'rq_1' }));
  const error = await session.client.call('session.list', { limit: 500 }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(InvalidParamsError);
  expect(error).toMatchObject({ rpcCode: -32602, code: 'invalid_params', issues, requestId: 'rq_1', message: 'Invalid params' });
});

test.each([
  [-32001, { code: 'not_found' }, NotFoundError],
  [-32603, { code: 'insufficient_scope' }, PermissionError],
  [-32603, { code: 'internal' }, ServerError],
  [-32603, undefined, ServerError],
])('error %i with %o has its class', async (code, data, kind) => {
  await using session = await open((request) => failure(request, code, 'No.', data));
  await expect(session.client.call('agents.get', { agentId: 'scout' })).rejects.toBeInstanceOf(kind);
});

test.each([
  [401, { error: { message: 'Bad token', type: 'authentication_error', param: null, code: null } }, AuthenticationError],
  [404, { error: { message: 'Model not found: x', type: 'not_found_error', param: 'model', code: null } }, NotFoundError],
  [403, { error: 'Not for this origin.', code: 'forbidden_origin', requestId: 'rq_2' }, PermissionError],
  [500, 'not an object', ServerError],
])('status %i has its class', async (status, body, kind) => {
  await using session = await open(({ response }) => answer(response, status, body, { 'x-request-id': 'rq_2' }));
  const error = await session.client.chat({ model: 'x', messages: [] }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(kind);
  expect(error).toMatchObject({ httpStatus: status, requestId: 'rq_2' });
});

test('a rate-limited read is retried after the pause requested by the server', async () => {
  let tries = 0;
  await using session = await open((request) => {
    tries += 1;
    return tries < 3
      ? answer(request.response, 429, failure(request, -32000, 'Too many', { retryAfterMs: 2 }))
      : result(request, { agents: ['default'] });
  });
  expect(await session.client.call('agents.list')).toEqual({ agents: ['default'] });
  expect(tries).toBe(3);
});

test('a pause longer than the limit is not waited for', async () => {
  await using session = await open((request) => answer(request.response, 429, failure(request, -32000, 'Too many'), { 'retry-after': '30' }));
  const error = await session.client.call('agents.list').catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(RateLimitError);
  expect(error).toMatchObject({ retryAfterMs: 30_000, httpStatus: 429 });
  expect(session.gateway.requests).toHaveLength(1);
});

test('a call with side effects is never retried', async () => {
  await using session = await open((request) => answer(request.response, 503, failure(request, -32006, 'Draining', { code: 'unavailable' })));
  await expect(session.client.call('agents.delete', { agentId: 'scout' })).rejects.toMatchObject({ code: 'unavailable' });
  await expect(session.client.chat({ model: 'm', messages: [] })).rejects.toMatchObject({ code: 'unavailable' });
  expect(session.gateway.requests).toHaveLength(2);
});

test('an unreachable server throws a ConnectionError with the address', async () => {
  const gateway = await startGateway({});
  await gateway[Symbol.asyncDispose]();
  const client = createClient({ url: gateway.url, token, retry: { retries: 0 } });
  const error = await client.call('system.ping').catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ConnectionError);
  expect(String(error)).toContain(gateway.url);
  expect(String(error)).toContain('ECONNREFUSED');
});

test('a deadline throws a TimeoutError', async () => {
  await using session = await open(() => undefined);
  await expect(session.client.call('agents.delete', { agentId: 'scout' }, { timeoutMs: 20 })).rejects.toBeInstanceOf(TimeoutError);
});

test('aborting throws the reason of the signal', async () => {
  const controller = new AbortController();
  await using session = await open(() => controller.abort(new Error('enough')));
  await expect(session.client.call('system.ping', {}, { signal: controller.signal })).rejects.toThrow('enough');
  expect(session.gateway.requests).toHaveLength(1);
});

test('a redirect is refused, because it would leak the token', async () => {
  await using session = await open(({ response }) => answer(response, 302, {}, { location: 'http://127.0.0.1:1/' }));
  await expect(session.client.call('tokens.revoke', { id: 'x' })).rejects.toBeInstanceOf(ConnectionError);
});

test('a response that is not JSON throws a ServerError', async () => {
  await using session = await open(({ response }) => void response.end('<html>'));
  await expect(session.client.call('system.ping')).rejects.toMatchObject({ code: 'bad_reply' });
});

test('a batch returns one outcome for each call, in order, whatever the order of the replies', async () => {
  await using session = await open(({ body }) => {
    const [ping, list] = JSON.parse(body);
    return [
      { jsonrpc: '2.0', id: list.id, error: { code: -32603, message: "Insufficient scope: requires 'admin'", data: { code: 'insufficient_scope' } } },
      { jsonrpc: '2.0', id: ping.id, result: { pong: true, ts: 7 } },
    ];
  });
  const [ping, list, unanswered] = await session.client.batch([
    { method: 'system.ping' },
    { method: 'agents.list', params: {} },
    { method: 'models.list' },
  ]);
  expect(ping).toEqual({ ok: true, result: { pong: true, ts: 7 } });
  expect(list.ok ? undefined : list.error).toBeInstanceOf(PermissionError);
  expect(unanswered.ok).toBe(false);
});

test('an empty batch sends nothing, a refused one throws', async () => {
  await using session = await open(() => ({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'Too long' } }));
  expect(await session.client.batch([])).toEqual([]);
  expect(session.gateway.requests).toHaveLength(0);
  await expect(session.client.batch([{ method: 'system.ping' }])).rejects.toMatchObject({ rpcCode: -32600 });
});

test('reads health, models and activity', async () => {
  const health = { status: 'ok', version: '0.1.0', uptimeMs: 1, checks: {} };
  const model = { id: 'local/m', object: 'model', created: 0, owned_by: 'local' };
  const activity = { entries: [{ id: 4, event: 'agent:hot_added', payload: { agentId: 'scout' }, timestamp: 1 }], count: 1 };
  const answers: Record<string, unknown> = { '/health': health, '/v1/models': { object: 'list', data: [model] }, '/api/activity?limit=5': activity };
  await using session = await open(({ path }) => answers[path]);
  expect(await session.client.health()).toEqual(health);
  expect(await session.client.models()).toEqual([model]);
  expect(await session.client.activity({ limit: 5 })).toEqual(activity);
});

test('a batch that is refused as a whole has the error of its calls, with the time of the next try', async () => {
  await using session = await open(({ body, response }) =>
    answer(
      response,
      429,
      JSON.parse(body).map(({ id }: { id: number }) => ({
        jsonrpc: '2.0',
        id,
        error: { code: -32000, message: 'Rate limit exceeded', data: { code: 'rate_limited', retryAfterMs: 51_000 } },
      })),
    ),
  );
  const error = await session.client.batch([{ method: 'system.ping' }, { method: 'agents.list' }]).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code: 'rate_limited', message: 'Rate limit exceeded', retryAfterMs: 51_000 });
});
