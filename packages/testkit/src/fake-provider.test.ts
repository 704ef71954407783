import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeProvider, startFakeProvider } from './fake-provider.ts';

let provider: FakeProvider;
beforeAll(async () => {
  provider = await startFakeProvider({ deltas: 4, apiKey: 'secret' });
});
afterAll(() => provider.close());

async function post(path: string, body: object, key = 'secret') {
  const response = await fetch(provider.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

describe('the fake provider', () => {
  test('answers in both formats, streamed and whole', async () => {
    const whole = await post('/chat/completions', { model: 'mock-fast' });
    expect(JSON.parse(whole.text)).toMatchObject({
      model: 'mock-fast',
      choices: [{ message: { content: 'the gateway answers with ' }, finish_reason: 'stop' }],
      usage: { total_tokens: 24 },
    });
    const stream = await post('/chat/completions', { model: 'mock-fast', stream: true });
    expect(stream.text.match(/"content":"[^"]+"/g)).toHaveLength(4);
    expect(stream.text.endsWith('data: [DONE]\n\n')).toBe(true);
    const message = await post('/messages', { model: 'm' });
    expect(JSON.parse(message.text)).toMatchObject({ type: 'message', stop_reason: 'end_turn', usage: { output_tokens: 4 } });
    expect((await post('/messages', { model: 'm', stream: true })).text).toContain('event: message_stop');
  });

  test('refuses other keys', async () => {
    expect(await post('/chat/completions', {}, 'wrong')).toMatchObject({ status: 401 });
  });

  test('answers from the queue first, then the function, then its default; and keeps a journal', async () => {
    provider.queue({ text: 'queued' });
    provider.setAnswer(({ body }) => (JSON.stringify(body).includes('special') ? { text: 'scripted' } : undefined));
    const texts: unknown[] = [];
    for (const model of ['special', 'special', 'plain'])
      texts.push(JSON.parse((await post('/chat/completions', { model })).text).choices[0].message.content);
    provider.setAnswer(undefined);
    expect(texts).toEqual(['queued', 'scripted', 'the gateway answers with ']);
    expect(provider.requests.at(-1)).toMatchObject({ method: 'POST', path: '/v1/chat/completions', body: { model: 'plain' } });
  });

  test('returns embeddings as numbers and as bytes', async () => {
    const float = JSON.parse((await post('/embeddings', { model: 'e', input: ['a', 'b'] })).text);
    const base64 = JSON.parse((await post('/embeddings', { model: 'e', input: ['a', 'b'], encoding_format: 'base64' })).text);
    expect(float.data).toHaveLength(2);
    expect([...new Float32Array(Uint8Array.from(Buffer.from(base64.data[1].embedding, 'base64')).buffer)]).toEqual(float.data[1].embedding);
  });
});
