import { HttpError, routes, type Route } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { post, rawExchange, startGateway, testTokens, wrongToken } from './testing/gateway-fixture.ts';

const clock = createStepClock();
let fixture: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  fixture = await startGateway({ clock, config: { httpBodyLimitBytes: 2048 } });
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Exactly the format of the family, including the request id of the response. */
async function expectFailure(response: Response, status: number, code: string): Promise<void> {
  const body: unknown = await response.json();
  expect([response.status, body]).toEqual([status, { error: expect.any(String), code, requestId: response.headers.get('x-request-id') }]);
  expect(HttpError().parse(body).error).not.toBe('');
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
}

describe('failures outside /v1 and /rpc are {error, code, requestId} (decisions §4)', () => {
  const all = Object.entries<Route>(routes)
    .filter(([, { family }]) => family === 'api')
    .map(([name, route]) => [name, route.path.replaceAll(/[:*]\w+/g, 'x.png'), route] as const);
  const open = all.filter(([, , { scope }]) => scope !== 'none');
  // Refusals of webhooks are tested in routes/hooks.test.ts: their signature comes first.
  const posted = all.filter(([, , { body, signed }]) => body !== undefined && signed !== true);
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it.each(all)('%s: a method that the path does not accept', async (_name, path) => {
    const response = await fetch(fixture.address + path, { method: 'PATCH', headers: bearer(testTokens.all) });
    await expectFailure(response, 405, 'method_not_allowed');
    expect(response.headers.get('allow')).toMatch(/GET|POST/);
  });

  it.each(open)('%s: no token, a wrong one, one without the scope', async (_name, path, { method }) => {
    const ask = (headers: Record<string, string>): Promise<Response> => fetch(fixture.address + path, { method, headers });
    // Ten wrong secrets within a minute would be answered with 429.
    clock.advance(60_000);
    await expectFailure(await ask({}), 401, 'unauthenticated');
    await expectFailure(await ask(bearer(wrongToken)), 401, 'unauthenticated');
    await expectFailure(await ask(bearer(testTokens.mcp)), 403, 'insufficient_scope');
  });

  it.each(posted)('%s: a body that is not JSON, not an object, too large, compressed or of another type', async (_name, path) => {
    const url = fixture.address + path;
    await expectFailure(await post(url, testTokens.all, '{"message":'), 400, 'parse_error');
    await expectFailure(await post(url, testTokens.all, '[1]'), 400, 'invalid_params');
    await expectFailure(await post(url, testTokens.all, { nobodyKnows: 1 }), 400, 'invalid_params');
    await expectFailure(await post(url, testTokens.all, { message: 'x'.repeat(4_000) }), 413, 'payload_too_large');
    await expectFailure(await post(url, testTokens.all, '{}', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type');
    await expectFailure(await post(url, testTokens.all, '{}', { 'content-encoding': 'gzip' }), 415, 'unsupported_media_type');
  });

  it.each(['/nothing', '/api', '/api/', '/api/no/such/path', '/api/chat/', '/health/x', '/V1/models'])('%s: no such path', async (path) => {
    await expectFailure(await fetch(fixture.address + path, { headers: bearer(testTokens.all) }), 404, 'not_found');
  });
});

describe('a target in absolute form (RFC 9112 §3.2.2)', () => {
  const ask = async (target: string, host = 'localhost'): Promise<string> =>
    (await rawExchange(fixture.port, `GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)).text.split('\r\n')[0] ?? '';

  it.each(['http://localhost/health', 'HTTP://127.0.0.1:4766/health?ready', 'https://localhost/health', 'http://localhost/api/health'])(
    'leads %s to its route',
    async (target) => expect(await ask(target)).toBe('HTTP/1.1 200 OK'),
  );

  it('overrides the Host header', async () => {
    expect(await ask('http://localhost/health', 'evil.example')).toBe('HTTP/1.1 200 OK');
    expect(await ask('http://evil.example/health')).toBe('HTTP/1.1 403 Forbidden');
    expect(await ask('http://localhost@evil.example/health')).toBe('HTTP/1.1 403 Forbidden');
    expect(await ask('http://evil.example@localhost/health')).toBe('HTTP/1.1 403 Forbidden');
  });

  it.each(['http://localhost//health', 'ftp://localhost/health', 'http:/localhost/health'])('finds no route behind %s', async (target) => {
    expect(await ask(target)).toMatch(/^HTTP\/1\.1 4/);
  });
});
