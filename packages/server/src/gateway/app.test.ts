import { createServer } from 'node:http';
import { type Health, routes } from '@gatehouse/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { post, rawExchange, startGateway, testTokens, wrongToken } from './testing/gateway-fixture.ts';

type Fixture = Awaited<ReturnType<typeof startGateway>>;

function get(fixture: Fixture, path: string, token?: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(fixture.address + path, { headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers } });
}

function raw(fixture: Fixture, lines: readonly string[], body = ''): Promise<{ readonly text: string; readonly closed: boolean }> {
  return rawExchange(fixture.port, `${lines.join('\r\n')}\r\n\r\n${body}`, 500);
}

describe('the order of checks', () => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = await startGateway({ config: { corsOrigins: ['https://app.example'], allowedHosts: ['gate.example'] } });
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  it('answers 404 in the shape of the family that the path belongs to', async () => {
    const v1 = await get(fixture, '/v1/nothing', testTokens.all);
    expect(v1.status).toBe(404);
    expect(await v1.json()).toEqual({ error: { message: 'No such path', type: 'not_found_error', param: null, code: null } });
    const api = await get(fixture, '/nothing');
    expect(api.status).toBe(404);
    expect(await api.json()).toEqual({ error: 'No such path', code: 'not_found', requestId: api.headers.get('x-request-id') });
  });

  it.each([
    ['/v1/models', 'POST', 'GET, HEAD'],
    ['/v1/chat/completions', 'GET', 'POST'],
    ['/rpc', 'GET', 'POST'],
    ['/health', 'DELETE', 'GET, HEAD'],
  ])('answers 405 with Allow for %s %s', async (path, method, allow) => {
    const response = await fetch(fixture.address + path, { method, headers: { authorization: `Bearer ${testTokens.all}` } });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
    expect(JSON.stringify(await response.json())).toContain('This path takes');
  });

  it.each(['//health', '/health/', '/health/../v1/models', '/%68ealth', '/healthx', '/v1//models', '/v1/models/', '/V1/models', '/v1\\models'])(
    'knows no route behind %s',
    async (path) => {
      const { text } = await raw(fixture, [
        `GET ${path} HTTP/1.1`,
        'host: localhost',
        `authorization: Bearer ${testTokens.all}`,
        'connection: close',
      ]);
      expect(text).toMatch(/^HTTP\/1\.1 404 /);
    },
  );

  it('puts the request id, nosniff and the limits on every answer, and takes over a well-formed id', async () => {
    const response = await get(fixture, '/v1/models', testTokens.api, { 'x-request-id': 'client.id-1' });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-request-id': 'client.id-1',
      'x-content-type-options': 'nosniff',
      'ratelimit-limit': '10000',
      'ratelimit-policy': '10000;w=60',
      'ratelimit-reset': expect.stringMatching(/^\d+$/),
    });
    expect((await get(fixture, '/health', undefined, { 'x-request-id': 'a b<script>' })).headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/);
  });

  describe('scope table (A3)', () => {
    const cells = Object.entries(routes).flatMap(([name, route]) =>
      name === 'ws' ? [] : Object.keys(testTokens).map((token) => [name, route.path.replace('*id', 'local/test-model'), route, token] as const),
    );
    const opens: Record<string, readonly string[]> = {
      none: Object.keys(testTokens),
      any: Object.keys(testTokens),
      v1: ['rpc', 'api', 'all', 'empty'],
      rpc: ['rpc', 'admin', 'all', 'empty'],
      'mcp-client': ['mcp', 'all', 'empty'],
    };
    const refusal = { error: { message: "Insufficient scope: requires 'rpc' or 'api'", type: 'permission_error', param: null, code: null } };
    it.each(cells)('%s %s %s %s', async (_name, path, route, token) => {
      const secret = testTokens[token as keyof typeof testTokens];
      const headers = { authorization: `Bearer ${secret}` };
      const response =
        route.method === 'POST'
          ? await post(fixture.address + path, secret, {})
          : await fetch(fixture.address + path, { method: route.method, headers });
      const passes = opens[route.scope]?.includes(token) ?? false;
      expect(response.status === 403).toBe(!passes);
      if (!passes && route.family === 'rpc')
        expect(await response.json()).toMatchObject({
          jsonrpc: '2.0',
          error: { message: `Insufficient scope: requires '${route.scope}'`, data: { code: 'insufficient_scope', required: route.scope } },
        });
      else if (!passes)
        expect(await response.json()).toEqual(
          route.family === 'v1'
            ? refusal
            : route.family === 'messages'
              ? { type: 'error', ...refusal, request_id: response.headers.get('x-request-id') }
              : { error: "Insufficient scope: requires 'rpc'", code: 'insufficient_scope', requestId: response.headers.get('x-request-id') },
        );
      else await response.body?.cancel();
    });

    it('requires a token where the route has a scope, without revealing why one is wrong', async () => {
      const closed = Object.entries(routes).filter(([name, route]) => route.scope !== 'none' && name !== 'ws');
      for (const [, route] of closed) {
        const path = fixture.address + route.path.replace('*id', 'x/y');
        const response = await (route.method === 'POST' ? post(path, undefined, {}) : fetch(path));
        expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      }
      const wrong = await get(fixture, '/v1/models', wrongToken);
      expect([wrong.status, await wrong.json()]).toEqual([
        401,
        { error: { message: 'The bearer token is not valid', type: 'authentication_error', param: null, code: null } },
      ]);
      const query = await get(fixture, `/v1/models?token=${testTokens.all}`);
      expect(query.status).toBe(401);
    });

    it('accepts the scheme in any letter case', async () => {
      expect((await get(fixture, '/v1/models', undefined, { authorization: `bEaReR ${testTokens.all}` })).status).toBe(200);
      expect((await get(fixture, '/v1/models', undefined, { authorization: `Basic ${testTokens.all}` })).status).toBe(401);
    });

    it('refuses two Authorization headers: a proxy may have read the other one', async () => {
      const twice = [`authorization: Bearer ${testTokens.all}`, `authorization: Bearer ${testTokens.api}`];
      const { text } = await raw(fixture, ['GET /v1/models HTTP/1.1', 'host: localhost', 'connection: close', ...twice]);
      expect(text).toMatch(/^HTTP\/1\.1 401 /);
    });
  });

  describe('Host and Origin (A9)', () => {
    const request = (headers: readonly string[], method = 'GET', path = '/v1/models'): Promise<{ text: string }> =>
      raw(fixture, [`${method} ${path} HTTP/1.1`, ...headers, `authorization: Bearer ${testTokens.all}`, 'connection: close']);

    it.each([
      'localhost',
      'localhost:1',
      '127.0.0.1:4766',
      '127.9.9.9',
      '[::1]:80',
      'LOCALHOST',
      'app.localhost',
      'gate.example:443',
      'Gate.Example.',
    ])('answers to host %s', async (host) => {
      expect((await request([`host: ${host}`])).text).toMatch(/^HTTP\/1\.1 200 /);
    });

    it.each(['evil.example:4766', 'localhost.evil.example', '127.0.0.1.evil.example', 'evillocalhost', '10.0.0.1', '[::2]', ''])(
      'refuses host "%s"',
      async (host) => {
        const { text } = await request([`host: ${host}`]);
        expect(text).toMatch(/^HTTP\/1\.1 403 /);
        expect(text).toContain('permission_error');
      },
    );

    it.each([
      ['origin: https://evil.example'],
      ['origin: null'],
      ['origin: http://localhost:9999'],
      ['origin: http://localhost.evil.example'],
      ['sec-fetch-site: cross-site'],
      ['sec-fetch-site: same-site'],
      ['origin: https://app.example.evil.example'],
    ])('refuses %s, on health too', async (header) => {
      for (const path of ['/v1/models', '/health']) {
        const { text } = await request(['host: localhost', header], 'GET', path);
        expect(text).toMatch(/^HTTP\/1\.1 403 /);
        expect(text.toLowerCase()).not.toContain('access-control-allow-origin');
      }
    });

    it('admits its own pages and the configured origins, with headers for browsers', async () => {
      expect((await request(['host: localhost:4766', 'origin: http://localhost:4766', 'sec-fetch-site: same-origin'])).text).toMatch(
        /^HTTP\/1\.1 200 /,
      );
      const { text } = await request(['host: localhost', 'origin: https://app.example', 'sec-fetch-site: cross-site']);
      expect(text).toMatch(/^HTTP\/1\.1 200 /);
      expect(text.toLowerCase()).toContain('access-control-allow-origin: https://app.example\r\n');
      expect(text.toLowerCase()).toContain('vary: origin\r\n');
    });

    it('answers a preflight without a token', async () => {
      const { text } = await raw(fixture, [
        'OPTIONS /v1/chat/completions HTTP/1.1',
        'host: localhost',
        'origin: https://app.example',
        'access-control-request-method: POST',
        'access-control-request-headers: authorization, x-stainless-os',
        'connection: close',
      ]);
      expect(text).toMatch(/^HTTP\/1\.1 204 /);
      expect(text.toLowerCase()).toContain('access-control-allow-methods: post\r\n');
      expect(text.toLowerCase()).toContain('access-control-allow-headers: authorization, x-stainless-os\r\n');
    });
  });

  it('is not ready while its lease of a shared database is not renewed: another node may be the active one', async () => {
    let lease: Health['checks'][string] = { status: 'failed', detail: 'not renewed' };
    const health = (): Health => ({ status: 'degraded', role: 'active', version: '0.0.0', uptimeMs: 1, checks: { lease } });
    await using shared = await startGateway({ deps: { health } });
    const ask = async (path: string) => (await fetch(`${shared.address}${path}`)).status;
    expect([await ask('/health'), await ask('/health?ready')]).toEqual([200, 503]);
    lease = { status: 'ok' };
    expect([await ask('/health'), await ask('/health?ready')]).toEqual([200, 200]);
  });

  it('serves health, the documents and 426 for a /ws request that is not a handshake', async () => {
    expect(await (await get(fixture, '/api/health?ready')).json()).toEqual({ status: 'ok', version: '0.0.0', uptimeMs: 1, checks: {} });
    expect(await (await get(fixture, '/openapi.json')).json()).toEqual({ openapi: '3.1.0' });
    expect(await (await get(fixture, '/openrpc.json')).json()).toEqual({ openrpc: '1.3.2' });
    const ws = await get(fixture, '/ws', testTokens.all);
    expect([ws.status, ws.headers.get('upgrade'), await ws.json()]).toEqual([
      426,
      'websocket',
      { jsonrpc: '2.0', error: expect.objectContaining({ code: -32600 }), id: null },
    ]);
    const head = await fetch(`${fixture.address}/health`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it.each([
    ['HTTP/1.1 without a Host', ['GET /v1/models HTTP/1.1'], 400, 'A request must name one Host'],
    ['two Hosts', ['GET /v1/models HTTP/1.1', 'host: localhost', 'host: evil.example'], 400, 'A request must name one Host'],
    ['an expectation that nobody knows', ['GET /v1/models HTTP/1.1', 'host: localhost', 'expect: more'], 401, 'A bearer token is required'],
  ])('answers %s in its own words, with a request id', async (_what, lines, status, words) => {
    const { text } = await raw(fixture, [...lines, 'connection: close']);
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*x-request-id: req_[^]*"message":"${words}`));
  });

  it('answers an offer of h2c as an ordinary request', async () => {
    const { text } = await raw(fixture, [
      'GET /health HTTP/1.1',
      'host: localhost',
      'connection: upgrade, http2-settings',
      'upgrade: h2c',
      'http2-settings: AAMAAABkAAQAAP__',
    ]);
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('the rate limiter (B5, B6)', () => {
  it('accepts 100 requests in the window, then 429 with Retry-After; health is exempt, look-alikes are not', async () => {
    await using fixture = await startGateway({ config: { rateLimit: { windowMs: 60_000, maxRequests: 100 } } });
    for (let i = 0; i < 100; i++) expect((await get(fixture, '/v1/models', testTokens.api)).status).toBe(200);
    const limited = await get(fixture, '/v1/models', testTokens.api);
    expect([limited.status, await limited.json()]).toEqual([
      429,
      { error: { message: 'Rate limit exceeded', type: 'rate_limit_error', param: null, code: null } },
    ]);
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(limited.headers.get('ratelimit-remaining')).toBe('0');
    expect((await get(fixture, '/v1/models', testTokens.rpc)).status).toBe(200);
    const rpc = await post(`${fixture.address}/rpc`, testTokens.api, { jsonrpc: '2.0', method: 'system.ping', id: 1 });
    expect([rpc.status, await rpc.json()]).toEqual([
      429,
      {
        jsonrpc: '2.0',
        id: 1,
        error: { code: -32000, message: 'Rate limit exceeded', data: { code: 'rate_limited', retryAfterMs: expect.any(Number) } },
      },
    ]);
    expect(Number(rpc.headers.get('retry-after'))).toBeGreaterThan(0);
    const refusedOf = async (body: unknown): Promise<unknown> => {
      const response = await post(`${fixture.address}/rpc`, testTokens.api, body);
      const replies = (await response.json()) as { id: unknown } | { id: unknown }[];
      return [response.status, Array.isArray(replies) ? replies.map(({ id }) => id) : replies.id];
    };
    const ping = { jsonrpc: '2.0', method: 'system.ping' };
    expect(await refusedOf([{ ...ping, id: 'a' }, ping, { ...ping, id: 'b' }])).toEqual([429, ['a', 'b']]);
    expect(await refusedOf('{')).toEqual([429, null]);
    expect(await refusedOf({ ...ping, id: 1, params: { text: 'x'.repeat(70_000) } })).toEqual([429, null]);

    for (let i = 0; i < 500; i++) expect((await get(fixture, i % 2 === 0 ? '/health' : '/api/health')).status).toBe(200);
    for (let i = 0; i < 100; i++) await (await get(fixture, '/healthx')).body?.cancel();
    expect((await get(fixture, '/healthx')).status).toBe(429);
    expect((await raw(fixture, ['GET //health HTTP/1.1', 'host: localhost', 'connection: close'])).text).toMatch(/^HTTP\/1\.1 429 /);
    expect((await get(fixture, '/health')).status).toBe(200);
  });

  it('cannot be evaded by random tokens or a forged X-Forwarded-For', async () => {
    await using fixture = await startGateway({ config: { rateLimit: { windowMs: 60_000, maxRequests: 20 } } });
    const statuses = new Set<number>();
    for (let i = 0; i < 60; i++) statuses.add((await get(fixture, '/v1/models', `${i}-${wrongToken}`, { 'x-forwarded-for': `10.0.0.${i}` })).status);
    expect((await get(fixture, '/v1/models', undefined, { 'x-forwarded-for': '10.9.9.9' })).status).toBe(401);
    expect([...statuses].toSorted()).toEqual([401, 429]);
  });
});

describe('failed logins (R31)', () => {
  it('answers ten wrong secrets per address and minute with 401, then 429, reports it once, and always accepts the right one', async () => {
    await using fixture = await startGateway();
    const statuses: number[] = [];
    for (let i = 0; i < 14; i++) statuses.push((await get(fixture, '/v1/models', `${i}${wrongToken}`)).status);
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(4).fill(429)]);
    const right = await get(fixture, '/v1/models', testTokens.all);
    expect(right.status).toBe(200);
    expect((await get(fixture, '/v1/models', `x${wrongToken}`)).headers.has('retry-after')).toBe(true);
    expect((await get(fixture, '/health')).status).toBe(200);
    expect(fixture.events.filter((event) => event.kind === 'security:warn')).toHaveLength(1);
  });
});

it('refuses a request with two Authorization headers, whichever of them is right', async () => {
  await using fixture = await startGateway();
  for (const pair of [
    [testTokens.all, wrongToken],
    [wrongToken, testTokens.all],
    [testTokens.all, testTokens.all],
  ]) {
    const headers = pair.map((token, index) => `${index === 0 ? 'Authorization' : 'authorization'}: Bearer ${token}\r\n`).join('');
    const { text } = await rawExchange(fixture.port, `GET /v1/models HTTP/1.1\r\nhost: localhost\r\n${headers}connection: close\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 401 [\s\S]*received several/);
  }
});

describe('internal errors (A13)', () => {
  it('are sent without their message, under the request id', async () => {
    const boom = (): never => {
      throw new Error('secret detail at /home/x.ts SELECT *');
    };
    const logged: unknown[] = [];
    const { silentLog } = await import('../kernel/log.ts');
    await using fixture = await startGateway({
      turn: async () => boom(),
      handlers: { 'system.ping': async () => boom() },
      deps: { health: boom },
      log: { ...silentLog, error: (fields) => void logged.push(fields) },
    });
    const chat = await post(`${fixture.address}/v1/chat/completions`, testTokens.all, { model: 'm', messages: [{ role: 'user', content: 'hi' }] });
    expect([chat.status, await chat.json()]).toEqual([500, { error: { message: 'Internal error', type: 'server_error', param: null, code: null } }]);
    const health = await get(fixture, '/health');
    expect([health.status, await health.json()]).toEqual([
      500,
      { error: 'Internal error', code: 'internal', requestId: health.headers.get('x-request-id') },
    ]);
    const rpc = await post(`${fixture.address}/rpc`, testTokens.all, { jsonrpc: '2.0', method: 'system.ping', id: 7 });
    expect([rpc.status, await rpc.json()]).toEqual([
      200,
      {
        jsonrpc: '2.0',
        id: 7,
        error: { code: -32603, message: 'Internal error', data: { code: 'internal', requestId: rpc.headers.get('x-request-id') } },
      },
    ]);
    expect(logged).toHaveLength(3);
    expect(fixture.events.map((event) => event.kind)).toContain('system:error');
  });
});

it('serves the owner without token, limit or Host, with every scope', async () => {
  await using fixture = await startGateway({ config: { rateLimit: { windowMs: 60_000, maxRequests: 1 } } });
  const socket = createServer(fixture.gateway.serveOwner);
  await new Promise<void>((resolve) => socket.listen(0, '127.0.0.1', resolve));
  const bound = socket.address();
  const address = `http://127.0.0.1:${typeof bound === 'object' && bound !== null ? bound.port : 0}`;
  for (const id of [1, 2, 3])
    expect(await (await post(`${address}/rpc`, undefined, { jsonrpc: '2.0', method: 'tokens.list', params: {}, id })).json()).toMatchObject({
      id,
      result: { total: 1 },
    });
  socket.close();
  socket.closeAllConnections();
});

it('authenticates a caller with a token on the owner-only socket, and refuses a wrong one', async () => {
  await using fixture = await startGateway();
  const socket = createServer(fixture.gateway.serveOwner);
  await new Promise<void>((resolve) => socket.listen(0, '127.0.0.1', resolve));
  const bound = socket.address();
  const address = `http://127.0.0.1:${typeof bound === 'object' && bound !== null ? bound.port : 0}`;
  for (const [authorization, status] of [
    [`Bearer ${testTokens.all}`, 200],
    [`Bearer ${testTokens.api}`, 403],
    [`Bearer ${wrongToken}`, 401],
    ['Bearer', 401],
    ['Basic b3duZXI6', 401],
  ] as const)
    expect([authorization, (await fetch(`${address}/metrics`, { headers: { authorization } })).status]).toEqual([authorization, status]);
  socket.close();
  socket.closeAllConnections();
});

describe('start and end', () => {
  it('reports that the port is in use', async () => {
    await using first = await startGateway();
    await expect(startGateway({ config: { port: first.port } })).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining(`127.0.0.1:${first.port}`),
    });
  });

  it('drains: finishes running calls, fails probes and refuses new calls until it stops', async () => {
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    await using fixture = await startGateway({
      turn: async () => {
        started.resolve();
        await finish.promise;
        return { text: 'done' };
      },
    });
    const answer = post(`${fixture.address}/v1/chat/completions`, testTokens.all, { model: 'm', messages: [{ role: 'user', content: 'hi' }] });
    await started.promise;
    let drained = false;
    const draining = fixture.gateway.drain(5_000).then(() => (drained = true));
    const ready = await fetch(`${fixture.address}/health?ready`);
    expect([ready.status, ready.headers.get('connection'), await ready.json()]).toEqual([
      503,
      'close',
      expect.objectContaining({ status: 'draining' }),
    ]);
    const refused = await post(`${fixture.address}/v1/chat/completions`, testTokens.all, {});
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([
      503,
      '1',
      { error: { message: 'The server is shutting down', type: 'server_error', param: null, code: null } },
    ]);
    expect(drained).toBe(false);
    finish.resolve();
    const response = await answer;
    expect([response.status, response.headers.get('connection')]).toEqual([200, 'close']);
    await response.json();
    await draining;
    expect(drained).toBe(true);
    await fixture.gateway[Symbol.asyncDispose]();
    await expect(fetch(`${fixture.address}/health`)).rejects.toThrow();
  });
});
