import { contract } from '@gatehouse/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { post, startGateway, testTokens } from '../testing/gateway-fixture.ts';

const ping = (id?: unknown): object => ({ jsonrpc: '2.0', method: 'system.ping', ...(id !== undefined && { id }) });

describe('POST /rpc', () => {
  let fixture: Awaited<ReturnType<typeof startGateway>>;
  let seen: unknown;
  beforeAll(async () => {
    fixture = await startGateway({
      handlers: {
        'session.list': async (params) => {
          seen = params;
          return { sessions: [], total: 0, offset: 0, limit: 50, hasMore: false };
        },
        'tokens.list': async () => ({ tokens: [{ id: 'x', scopes: ['nonsense'] }], total: 1 }) as never,
      },
    });
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  async function rpc(body: unknown, token: string = testTokens.all): Promise<{ status: number; body: unknown }> {
    const response = await post(`${fixture.address}/rpc`, token, body);
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  }

  it.each([1, 'abc', 1.5, null, ''])('answers a call and echoes id %j', async (id) => {
    expect(await rpc(ping(id))).toEqual({ status: 200, body: { jsonrpc: '2.0', result: contract['system.ping'].examples[0]?.result, id } });
  });

  it('runs a notification and answers 204, also for a batch of them', async () => {
    const before = fixture.calls.length;
    expect(await rpc(ping())).toEqual({ status: 204, body: undefined });
    expect(await rpc([ping(), ping()])).toEqual({ status: 204, body: undefined });
    expect(fixture.calls.length - before).toBe(3);
    expect(await rpc({ jsonrpc: '2.0', method: 'no.such' })).toEqual({ status: 204, body: undefined });
  });

  it.each([
    ['an empty batch', [], null],
    ['a batch of 51', Array(51).fill(ping(1)), null],
    ['a number', 1, null],
    ['no version', { method: 'system.ping', id: 4 }, 4],
    ['another version', { jsonrpc: '1.0', method: 'system.ping', id: 4 }, 4],
    ['a method that is not a string', { jsonrpc: '2.0', method: 1, id: 'a' }, 'a'],
    ['an id that is an object', { jsonrpc: '2.0', method: 'system.ping', id: {} }, null],
    ['params that are a string', { jsonrpc: '2.0', method: 'system.ping', params: 'x', id: 4 }, 4],
  ])('answers -32600 to %s', async (_what, body, id) => {
    expect(await rpc(body)).toEqual({
      status: 200,
      body: { jsonrpc: '2.0', id, error: { code: -32600, message: expect.any(String), data: { code: 'invalid_envelope' } } },
    });
  });

  it('answers 400 with -32700 to invalid JSON', async () => {
    expect(await rpc('{"jsonrpc":')).toEqual({
      status: 400,
      body: { jsonrpc: '2.0', id: null, error: { code: -32700, message: expect.stringContaining('not valid JSON'), data: { code: 'parse_error' } } },
    });
  });

  it('refuses a message that is valid JSON but not processed alone, with its id', async () => {
    const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    const entry = (id: number, params: string) => `{"jsonrpc":"2.0","method":"system.ping","params":${params},"id":${id}}`;
    const refusal = (id: number, words: string) => ({ id, error: { code: -32600, message: expect.stringContaining(words) } });
    const batch = `[${entry(1, '{}')},${entry(2, '{"a":{"__proto__":{}}}')},${entry(3, `{"a":${deep(70)}}`)},${entry(4, '{}')}]`;
    expect(await rpc(batch)).toMatchObject({
      status: 200,
      body: [{ id: 1, result: {} }, refusal(2, '__proto__'), refusal(3, 'more than 64 levels'), { id: 4, result: {} }],
    });
    expect(await rpc(entry(5, '{"__proto__":1}'))).toMatchObject({ status: 200, body: refusal(5, '__proto__') });
    expect(await rpc(deep(300_000))).toMatchObject({ status: 200, body: [{ id: null, error: { code: -32600 } }] });
  });

  it('keeps the order of a batch, leaves out notifications and answers bad entries in order', async () => {
    const { body } = await rpc([ping(1), ping(), 5, { jsonrpc: '2.0', method: 'no.such', id: 2 }, ping('three')]);
    expect(body).toMatchObject([
      { id: 1, result: {} },
      { id: null, error: { code: -32600 } },
      { id: 2, error: { code: -32601 } },
      { id: 'three', result: {} },
    ]);
  });

  it.each(['context.inspect', 'context.searchByConversation', 'tool.invoke', '__proto__', 'constructor', 'toString', ''])(
    'has no method %j (A7)',
    async (method) => {
      expect((await rpc({ jsonrpc: '2.0', method, id: 1 })).body).toMatchObject({ error: { code: -32601, data: { code: 'method_not_found' } } });
    },
  );

  it('names each wrong parameter', async () => {
    const { body } = await rpc({ jsonrpc: '2.0', method: 'tokens.create', params: { id: '-', scopes: ['rpc', 'nope'], extra: 1, more: 2 }, id: 1 });
    expect(body).toMatchObject({ error: { code: -32602, data: { code: 'invalid_params' } } });
    expect((body as { error: { data: { issues: { path: string }[] } } }).error.data.issues.map((issue) => issue.path).toSorted()).toEqual([
      'extra',
      'id',
      'more',
      'scopes.1',
    ]);
    expect((await rpc({ jsonrpc: '2.0', method: 'system.ping', params: [1], id: 1 })).body).toMatchObject({ error: { code: -32602 } });
  });

  it('drops parameters that start with an underscore before validation', async () => {
    const { body } = await rpc({ jsonrpc: '2.0', method: 'session.list', params: { _principal: 'token:other', _trust: 'admin' }, id: 1 });
    expect(body).toMatchObject({ result: { total: 0 } });
    expect(Object.keys(seen as object).filter((name) => name.startsWith('_'))).toEqual([]);
  });

  it('does not return a result that does not match its declaration', async () => {
    expect((await rpc({ jsonrpc: '2.0', method: 'tokens.list', id: 1 })).body).toMatchObject({ error: { code: -32603, message: 'Internal error' } });
  });

  it('accepts no token from the query', async () => {
    expect((await fetch(`${fixture.address}/rpc?token=${testTokens.all}`, { method: 'POST', body: '{}' })).status).toBe(401);
  });

  describe('scope of every method (A1, A2)', () => {
    const grants: Record<string, readonly string[]> = { rpc: ['rpc', 'admin', 'all', 'empty'], admin: ['admin', 'all', 'empty'] };
    it.each(Object.entries(contract))('%s', async (name, method) => {
      for (const [token, secret] of Object.entries(testTokens)) {
        const before = fixture.calls.length;
        const { status, body } = await rpc({ jsonrpc: '2.0', method: name, params: method.examples[0]?.params, id: 1 }, secret);
        expect(status).toBe(200);
        if (grants[method.scope]?.includes(token)) expect(body).not.toHaveProperty('error.data.required');
        else {
          expect(body).toEqual({
            jsonrpc: '2.0',
            id: 1,
            error: {
              code: -32603,
              message: `Insufficient scope: requires '${method.scope}'`,
              data: { code: 'insufficient_scope', required: method.scope },
            },
          });
          expect(fixture.calls).toHaveLength(before);
        }
      }
    });
  });

  it('counts the entries of a batch against the rate limit', async () => {
    await using small = await startGateway({ config: { rateLimit: { windowMs: 60_000, maxRequests: 3 } } });
    const response = await post(`${small.address}/rpc`, testTokens.all, [ping(1), ping(2), ping(3), ping(4), ping()]);
    expect(await response.json()).toMatchObject([
      { id: 1, result: {} },
      { id: 2, result: {} },
      { id: 3, result: {} },
      { id: 4, error: { code: -32000, data: { retryAfterMs: expect.any(Number) } } },
    ]);
    expect(response.headers.get('ratelimit-remaining')).toBe('0');
    await using roomy = await startGateway({ config: { rateLimit: { windowMs: 60_000, maxRequests: 60 } } });
    const batch = await post(
      `${roomy.address}/rpc`,
      testTokens.all,
      Array.from({ length: 50 }, (_, id) => ping(id)),
    );
    expect(batch.headers.get('ratelimit-remaining')).toBe('10');
  });
});
