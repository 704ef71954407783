import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

// Requests that cannot succeed are refused in a form that clients understand: 400 with a reason, before or after the model call.

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    config: {
      gateway: { compat: { fields: 'extended', tools: 'none' } },
      agents: {
        default: { model: 'mock/mock-fast' },
        poor: { model: 'mock/mock-fast', budgets: { perTurnTokens: 1000 } },
        spent: { model: 'mock/mock-fast', budgets: { perHourTokens: 3000 } },
      },
    },
  });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => server.provider.setAnswer(undefined));

async function post(path: string, body: object) {
  const before = server.provider.served();
  const response = await fetch(`${server.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'mock/mock-other', ...body }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, asked: server.provider.served() - before };
}
const chat = (messages: readonly object[], more: object = {}) => post('chat/completions', { messages, ...more });
const user = (content: string) => ({ role: 'user', content });
const words = (count: number) => 'word '.repeat(count);
const history = Array.from({ length: 30 }, (_, n) => [user(`${n} ${words(100)}`), { role: 'assistant', content: words(100) }]).flat();
const tooLong = /maximum context length is \d+ tokens, the request has \d+ tokens/;
const lastMessages = () => (server.provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] } | undefined)?.messages ?? [];

describe('a conversation that does not fit into the window', () => {
  test.each([
    ['one long message', [user(`START ${words(6000)} MID ${words(6000)} END`)]],
    ['a long history', [...history, user('and?')]],
  ])('is refused whole: %s', async (_what, messages) => {
    for (const stream of [false, true])
      for (const path of ['chat/completions', 'responses']) {
        const refused = await post(path, { [path === 'responses' ? 'input' : 'messages']: messages, stream });
        expect(refused).toMatchObject({ status: 400, asked: 0, text: expect.stringMatching(tooLong) });
        expect(refused.headers.get('x-gatehouse-error')).toBe('context_length_exceeded');
        expect(refused.headers.get('retry-after')).toBeNull();
        expect(JSON.parse(refused.text)).toMatchObject({ error: { type: 'invalid_request_error', code: null } });
      }
  });

  test('reaches the model unchanged as long as it fits, whatever answer length it requests', async () => {
    const fits = [...history.slice(0, 20), user('and?')];
    const { status, asked } = await chat(fits, { max_tokens: 4000 });
    expect([status, asked]).toEqual([200, 1]);
    expect(lastMessages().filter(({ role }) => role !== 'system')).toHaveLength(fits.length);
  });

  test('is refused in the same way when only the provider finds it too long, without a retry', async () => {
    server.provider.setAnswer(() => ({
      status: 400,
      error: { message: 'This model’s maximum context length is 10 tokens', code: 'context_length_exceeded' },
    }));
    const refused = await chat([user('hi')]);
    expect(refused).toMatchObject({ status: 400, asked: 1 });
    expect(refused.headers.get('x-gatehouse-error')).toBe('context_length_exceeded');
  });

  test('loses its oldest items with truncation auto, and the response says so', async () => {
    const cut = await post('responses', { input: [...history, user('and?')], truncation: 'auto' });
    expect(cut.status).toBe(200);
    const response = JSON.parse(cut.text) as { truncation: string; gatehouse: { left_out_messages: number } };
    expect(response.truncation).toBe('auto');
    expect(response.gatehouse.left_out_messages).toBeGreaterThan(10);
    expect(cut.headers.get('x-gatehouse-left-out')).toBe(String(response.gatehouse.left_out_messages));
    expect(lastMessages().at(-1)?.content).toBe('and?');
    const streamed = await post('responses', { input: [...history, user('and?')], truncation: 'auto', stream: true });
    expect(streamed.text).toContain('"left_out_messages":');
    const whole = await post('responses', { input: 'hi', truncation: 'auto' });
    expect(JSON.parse(whole.text)).not.toHaveProperty('gatehouse');
    expect((await post('responses', { input: [user(words(6000))], truncation: 'auto' })).status).toBe(400);
  });
});

describe('a request that the provider refuses', () => {
  test.each([400, 404, 413, 422])('with %i must not be retried', async (status) => {
    server.provider.setAnswer(() => ({ status, error: { message: 'tools.0: no such thing, key sk-abcdefghijklmnop' } }));
    for (const [path, body] of [
      ['chat/completions', { messages: [user('hi')] }],
      ['responses', { input: 'hi' }],
    ] as const)
      for (const stream of [false, true]) {
        const refused = await post(path, { ...body, stream });
        expect(refused).toMatchObject({ status: 400, asked: 1, text: expect.stringContaining('tools.0: no such thing') });
        expect(refused.headers.get('x-gatehouse-error')).toBe('upstream_rejected');
        expect(refused.headers.get('retry-after')).toBeNull();
        expect(refused.text).not.toContain('sk-abcdefghijklmnop');
      }
  });

  test('by its content filter, likewise', async () => {
    server.provider.setAnswer(() => ({ text: '', finishReason: 'content_filter' }));
    const refused = await chat([user('hi')]);
    expect([refused.status, refused.headers.get('x-gatehouse-error')]).toEqual([400, 'upstream_rejected']);
  });
});

describe('a budget', () => {
  test('that the request can never fit is a 400, one that a later window allows a 429 with the retry time', async () => {
    const never = await chat([user(words(1500))], { model: 'agent/poor' });
    expect([never.status, never.asked, never.headers.get('x-gatehouse-error')]).toEqual([400, 0, 'budget_exceeded']);
    expect(never.headers.get('retry-after')).toBeNull();
    server.provider.setAnswer(() => ({ text: 'ok', usage: { input: 2500, output: 100 } }));
    expect((await chat([user('hi')], { model: 'agent/spent', max_tokens: 100 })).status).toBe(200);
    const later = await chat([user(words(1000))], { model: 'agent/spent', max_tokens: 100 });
    expect([later.status, later.headers.get('x-gatehouse-error')]).toEqual([429, 'budget_exceeded']);
    expect(Number(later.headers.get('retry-after'))).toBeGreaterThan(60);
  });
});
