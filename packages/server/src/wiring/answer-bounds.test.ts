import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';

const maxAnswerBytes = 8192;
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { models: { maxAnswerBytes }, agents: { default: { model: 'mock/mock-fast', fallbackModels: [] } } } });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Sends a million characters, and never ends. */
const endless = { text: Array.from({ length: 500 }, () => 'x'.repeat(2000)), breakAfter: { deltas: 500, by: 'stall' } } as const;

async function chat(stream: boolean): Promise<{ readonly status: number; readonly text: string; readonly reason: string | null }> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'hello' }], stream }),
  });
  return { status: response.status, text: await response.text(), reason: response.headers.get('x-gatehouse-finish-reason') };
}

test('an endless stream is cut off at the limit, its socket is closed, and the client is notified', async () => {
  server.provider.queue(endless);
  const { status, text } = await chat(true);
  expect(status).toBe(200);
  const lines = text.split('\n').filter((line) => line.startsWith('data: '));
  expect(lines.at(-1)).toBe('data: [DONE]');
  expect(lines.at(-2)).toContain('"error"');
  // One socket read more than the limit.
  expect(text.length).toBeLessThan(300_000);
  await expect.poll(() => server.provider.aborted()).toBe(1);
});

test('a turn ends with the partial answer, as provider_degraded', async () => {
  server.provider.queue(endless);
  const response = await fetch(`${server.url}/api/chat/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'hello', sessionKey: 'u:c' }),
  });
  const text = await response.text();
  expect(text.slice(text.lastIndexOf('event: '))).toMatch(/^event: error\ndata: .*longer answer than requested/);
  await expect.poll(() => server.provider.aborted()).toBe(2);
  const { messages } = await server.client.call('session.history', { sessionKey: 'u:c' });
  expect(messages.map(({ role, content }) => [role, content.length > maxAnswerBytes])).toEqual([
    ['user', false],
    ['assistant', true],
  ]);
});

test('arguments of tool calls count too', async () => {
  server.provider.queue({ toolCalls: [{ id: 'call_1', name: 'read', arguments: JSON.stringify({ path: 'x'.repeat(20_000) }) }] });
  expect((await chat(true)).text).toContain('"error"');
});

test('an unstreamed answer is read up to its limit', async () => {
  server.provider.queue({ contentType: 'application/json', body: JSON.stringify({ choices: [{ message: { content: 'x'.repeat(200_000) } }] }) });
  expect(await server.client.call('agent.execute', { message: 'hello' })).toMatchObject({ finishReason: 'provider_degraded' });
});

test('reported usage is limited to plausible numbers', async () => {
  server.provider.queue({ text: 'hello', usage: { input: 90_000_000, output: 50_999_999 } });
  const { tokensUsed } = await server.client.call('agent.execute', { message: 'hello' });
  expect(tokensUsed.input).toBeLessThanOrEqual(128_000);
  expect(tokensUsed.output).toBeLessThanOrEqual(8192);
});

test('an answer of the requested length is complete', async () => {
  const text = 'word '.repeat(1600);
  server.provider.queue({ text: [text] });
  expect(await server.client.call('agent.execute', { message: 'hello' })).toMatchObject({ finishReason: 'stop', response: text });
});
