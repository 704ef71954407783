import { EmbeddingResponse } from '@gatehouse/contract';
import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { ModelError } from '../../llm/model.ts';
import { post, startGateway, testTokens } from '../testing/gateway-fixture.ts';
import type { EmbedTexts } from './v1-embeddings.ts';

const embedTexts: EmbedTexts = async (texts) => ({
  model: 'real-name',
  tokens: 0,
  vectors: texts.map((text) => Float32Array.of(text.length, -0.5, 0.25)),
});
const path = '/v1/embeddings';

function start(embed: EmbedTexts | undefined = embedTexts) {
  return startGateway({ deps: { embed, embeddingModel: { provider: 'local', model: 'x' } } });
}

describe('POST /v1/embeddings', () => {
  it('answers in order, with the provider’s name and the token estimate', async () => {
    await using fixture = await start();
    const response = await post(fixture.address + path, testTokens.api, { model: 'x', input: ['abcde', 'a'] });
    expect(EmbeddingResponse().parse(await response.json())).toEqual({
      object: 'list',
      data: [
        { object: 'embedding', embedding: [5, -0.5, 0.25], index: 0 },
        { object: 'embedding', embedding: [1, -0.5, 0.25], index: 1 },
      ],
      model: 'real-name',
      usage: { prompt_tokens: 3, total_tokens: 3 },
    });
  });

  it('names a field in time linear in its length, up to a body of dots', async () => {
    await using fixture = await start();
    const send = async (dots: number) => {
      const response = await post(fixture.address + path, testTokens.api, { model: 'x', input: 'a', [`${'.'.repeat(dots)}\n`]: 1 });
      return [response.status, await response.json()];
    };
    expect(await send(60_000)).toMatchObject([400, { error: { type: 'invalid_request_error', param: '' } }]);
    expect(await cpuGrowth(7_500, send)).toBeLessThan(linear);
  });

  it('encodes base64 as little-endian floats', async () => {
    await using fixture = await start();
    const response = await post(fixture.address + path, testTokens.api, { model: 'x', input: 'ab', encoding_format: 'base64' });
    const { data } = EmbeddingResponse().parse(await response.json());
    const bytes = Buffer.from(String(data[0]?.embedding), 'base64');
    expect([bytes.length, bytes.readFloatLE(0), bytes.readFloatLE(4), bytes.readFloatLE(8)]).toEqual([12, 2, -0.5, 0.25]);
  });

  it.each([
    ['', 'at least 1 character'],
    [[], 'at least 1 item'],
    [['a', ''], 'at least 1 character'],
    [[1, 2, 3], 'non-empty'],
    [[[1, 2]], 'token ids are not accepted'],
    [undefined, 'non-empty'],
  ])('answers 400 to input %j', async (input, words) => {
    await using fixture = await start();
    const response = await post(fixture.address + path, testTokens.api, { model: 'x', input });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { type: 'invalid_request_error', param: 'input', message: expect.stringContaining(words) } },
    ]);
  });

  it('is strict', async () => {
    await using fixture = await start();
    expect(await (await post(fixture.address + path, testTokens.api, { model: 'x', input: 'a', dimensions: 2 })).json()).toMatchObject({
      error: { param: 'dimensions' },
    });
  });

  it('answers 404 without a provider', async () => {
    await using fixture = await startGateway();
    const response = await post(fixture.address + path, testTokens.api, { model: 'x', input: 'a' });
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: { message: 'No embedding provider configured', type: 'not_found_error', param: null, code: null } },
    ]);
  });

  it('maps the provider’s failures', async () => {
    await using limited = await start(() => Promise.reject(new ModelError('rate_limit', 'slow down', { retryAfterMs: 7_000 })));
    const response = await post(limited.address + path, testTokens.api, { model: 'x', input: 'a' });
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '7']);
    await using broken = await start(() => Promise.reject(new ModelError('server', 'internal detail')));
    const failed = await post(broken.address + path, testTokens.api, { model: 'x', input: 'a' });
    expect([failed.status, await failed.json()]).toEqual([
      500,
      { error: { message: 'The embedding provider failed', type: 'server_error', param: null, code: null } },
    ]);
  });

  it('is read by the openai package in both encodings', async () => {
    await using fixture = await start();
    const client = new OpenAI({ apiKey: testTokens.api, baseURL: `${fixture.address}/v1` });
    const implicit = await client.embeddings.create({ model: 'x', input: 'abc' });
    const plain = await client.embeddings.create({ model: 'x', input: 'abc', encoding_format: 'float' });
    expect([[...(implicit.data[0]?.embedding ?? [])], plain.data[0]?.embedding]).toEqual([
      [3, -0.5, 0.25],
      [3, -0.5, 0.25],
    ]);
  });
});
