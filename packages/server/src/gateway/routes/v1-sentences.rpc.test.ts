import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

// Content of a refusal: which field, what was expected, and how to enable what the default does not allow.

let server: TestServer;
let extended: string;
beforeAll(async () => {
  server = await startTestServer({ config: { gateway: { httpBodyLimitBytes: 65_536 }, embedding: { provider: 'mock', model: 'vectors-small' } } });
  extended = (await server.as(['api'], { compat: { fields: 'extended' } })).token;
});
afterAll(() => server[Symbol.asyncDispose]());

async function post(path: string, body: object, token = server.token) {
  const response = await fetch(`${server.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text) as Record<string, never> & { error: { message: string; param: string | null } } };
}
const hi = [{ role: 'user', content: 'hi' }];
const wayOut = /gateway\.compat\.fields: strict.*gatehouse connect CLIENT.*gateway\.compat\.fields: extended.*\/v1\/responses/;

describe('a strict gateway', () => {
  test.each([
    ['tools', { tools: [] }],
    ['several fields', { store: false, max_completion_tokens: 5, tools: [] }],
    ['a role that only the other set has', { messages: [{ role: 'developer', content: 'x' }, ...hi] }],
    ['a key of a message', { messages: [{ role: 'user', content: 'hi', name: 'Ann' }] }],
  ])('says how to get more: %s', async (_what, more) => {
    const { status, body } = await post('chat/completions', { model: 'default', messages: hi, ...more });
    expect([status, body.error.message]).toEqual([400, expect.stringMatching(wayOut)]);
    expect((await post('chat/completions', { model: 'default', messages: hi, ...more }, extended)).status).toBe(200);
  });

  test('does not suggest it for fields of no set', async () => {
    const { status, body } = await post('chat/completions', { model: 'default', messages: hi, nonsense: 1 });
    expect([status, body.error.message]).toEqual([400, 'nonsense: unknown field']);
  });
});

describe('sentences', () => {
  test.each([
    ['responses', { model: 'default', input: [] }, 'input', /^input: expected at least 1 item$/],
    [
      'chat/completions',
      { model: 'default', messages: hi, temperature: null },
      'temperature',
      /^temperature: expected number, received null; this gateway/,
    ],
    ['chat/completions', { model: 'default', messages: hi, temperature: 3 }, 'temperature', /^temperature: expected a number of at most 2$/],
    ['chat/completions', { model: '', messages: hi }, 'model', /^model: expected at least 1 character$/],
    ['responses', { model: 'default', input: 'x', truncation: 'maybe' }, 'truncation', /^truncation: expected "auto" or "disabled"$/],
  ])('of %s %j name the field and what was expected', async (path, body, param, words) => {
    const refused = await post(path, body);
    expect(refused).toMatchObject({ status: 400, body: { error: { param, message: expect.stringMatching(words) } } });
  });

  test('about a kind of part name the valid kinds', async () => {
    const content = [{ type: 'input_audio', input_audio: {} }];
    const { body } = await post('chat/completions', { model: 'default', messages: [{ role: 'user', content }] }, extended);
    expect(body.error.message).toMatch(/^messages\.0\.content\.0\.type: expected "text" or "image_url" or "file"$/);
  });

  test('about a body that is too large name the setting', async () => {
    const { status, body } = await post('responses', { model: 'default', input: 'x'.repeat(70_000) });
    expect([status, body.error.message]).toEqual([413, expect.stringContaining('gateway.httpBodyLimitBytes')]);
  });

  test('about a hosted tool name the setting that turns it off', async () => {
    const { body } = await post('responses', { model: 'default', input: 'x', tools: [{ type: 'web_search' }] });
    expect(body.error.message).toContain('Codex: web_search = "disabled"');
  });
});

describe('embeddings', () => {
  test.each(['vectors-small', 'mock/vectors-small'])('use the configured model: %s', async (model) => {
    expect((await post('embeddings', { model, input: 'a' })).status).toBe(200);
  });

  test('of another model are a 404, and the list of models shows the available one', async () => {
    expect(await post('embeddings', { model: 'vectors-large', input: 'a' })).toMatchObject({
      status: 404,
      body: { error: { message: 'Model not found: vectors-large', param: 'model' } },
    });
    const listed = await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${server.token}` } });
    expect(await listed.text()).toContain('"mock/vectors-small"');
  });

  test('accept dimensions and user with the extended set, when the model supports it', async () => {
    const body = { model: 'vectors-small', input: 'a' };
    const strict = await post('embeddings', { ...body, dimensions: 8 });
    expect([strict.status, strict.body.error.message]).toEqual([400, expect.stringMatching(wayOut)]);
    const made = await post('embeddings', { ...body, user: 'u' }, extended);
    expect(made.status).toBe(200);
    const { length } = (made.body as unknown as { data: { embedding: number[] }[] }).data[0]?.embedding ?? [];
    expect((await post('embeddings', { ...body, dimensions: length }, extended)).status).toBe(200);
    expect(server.provider.requests.at(-1)?.body).toMatchObject({ dimensions: length });
    const refused = await post('embeddings', { ...body, dimensions: length + 1 }, extended);
    expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining('dimensions')]);
  });
});
