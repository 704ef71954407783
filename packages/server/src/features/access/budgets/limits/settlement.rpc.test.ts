import { createServer } from 'node:http';
import { once } from 'node:events';
import { createStepClock, type FakeAnswer, type FakeProvider, startFakeProvider, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';

let claude: FakeProvider;
let server: TestServer;
const clock = createStepClock();
const cost = { input: 1, output: 2 };
beforeAll(async () => {
  claude = await startFakeProvider({ deltas: 5 });
  server = await startTestServer({
    clock,
    config: {
      providers: { claude: { type: 'anthropic', baseUrl: claude.url, apiKey: 'k', models: [{ id: 'c', cost }] } },
      agents: {
        openai: {
          model: 'mock/mock-fast',
          maxTokens: 500,
          circuitBreaker: { failures: 1000 },
          budgets: { perDayUsd: 500, perDayTokens: 90_000_000 },
        },
        claude: { model: 'claude/c', maxTokens: 500, circuitBreaker: { failures: 1000 }, budgets: { perDayUsd: 500, perDayTokens: 90_000_000 } },
      },
      budgets: { perDayUsd: 1000 },
    },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await claude.close();
});

const agents = ['openai', 'claude'] as const;
type AgentName = (typeof agents)[number];
const providerOf = (agentId: AgentName) => (agentId === 'claude' ? claude : server.provider);

/** Reserves of calls, and usage according to the caps and the report; both must agree. */
async function standing(agentId: AgentName) {
  const { budgets } = await server.client.call('capabilities.introspect', { agentId });
  const of = (cap: string) => budgets.find((one) => one.cap === cap && one.scope === 'agent');
  const { totals } = await server.client.call('usage.report', { agentId, groupBy: ['agent'] });
  expect(of('perDayTokens')?.used).toBe(totals.inputTokens + totals.outputTokens);
  expect(of('perDayUsd')?.used).toBe(totals.costUsd);
  return { held: budgets.map((one) => one.reserved), tokens: totals.inputTokens + totals.outputTokens };
}

const bodyOf = (agentId: AgentName, stream: boolean) => ({
  model: agentId,
  stream,
  messages: [{ role: 'user', content: 'word '.repeat(1000) }],
});

function post(body: object, signal?: AbortSignal): Promise<Response> {
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  return fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body), ...(signal && { signal }) });
}

const ends: readonly {
  readonly what: string;
  readonly answer: FakeAnswer;
  readonly stream: boolean;
  readonly leaves?: true;
  readonly times?: true;
}[] = [
  { what: 'the caller leaves before an answer', answer: { hang: true }, stream: false, leaves: true },
  { what: 'the caller leaves before a stream', answer: { hang: true }, stream: true, leaves: true },
  {
    what: 'the caller leaves in the middle of a stream',
    answer: { text: ['a ', 'b '], breakAfter: { deltas: 1, by: 'stall' } },
    stream: true,
    leaves: true,
  },
  { what: 'a model hangs until its deadline', answer: { hang: true }, stream: false, times: true },
  { what: 'a stream stalls until its deadline', answer: { text: ['a ', 'b '], breakAfter: { deltas: 1, by: 'stall' } }, stream: true, times: true },
  { what: 'a stream is cut', answer: { text: ['a ', 'b '], breakAfter: { deltas: 1, by: 'cut' } }, stream: true },
  { what: 'a stream ends before it is whole', answer: { text: ['a ', 'b '], breakAfter: { deltas: 1, by: 'end' } }, stream: true },
  { what: 'a stream carries an error', answer: { text: ['a ', 'b '], breakAfter: { deltas: 1, by: 'error' } }, stream: true },
  { what: 'an answer is not to be understood', answer: { body: '{"id":"x","content":7}', contentType: 'application/json' }, stream: false },
  { what: 'the length ends an answer', answer: { text: 'cut', finishReason: 'length' }, stream: false },
  { what: 'no use is reported', answer: { text: 'some words', usage: null }, stream: true },
];

describe.each(agents)('an agent of %s', (agentId) => {
  test.each(ends)('has nothing held and its use counted when $what', async ({ answer, stream, leaves, times }) => {
    const provider = providerOf(agentId);
    const before = await standing(agentId);
    const served = provider.served();
    provider.queue(answer);
    const caller = new AbortController();
    const answered = post(bodyOf(agentId, stream), caller.signal)
      .then((response) => response.text())
      .catch(() => '');
    await expect.poll(() => provider.served()).toBe(served + 1);
    if (leaves === true) {
      await expect.poll(async () => Math.max(...(await standing(agentId)).held)).toBeGreaterThan(0);
      caller.abort();
    }
    if (times === true) clock.advance(600_000);
    await answered;
    await expect.poll(async () => (await standing(agentId).catch(() => undefined))?.held).toEqual(before.held.map(() => 0));
    // The question alone has a thousand words; usage that a stream reported before it broke off is trusted.
    if (answer.text === undefined) expect((await standing(agentId)).tokens - before.tokens).toBeGreaterThan(1000);
    else expect((await standing(agentId)).tokens).toBeGreaterThan(before.tokens);
  });

  test.each([
    ['refuses the request', { status: 400, error: { message: 'no' } }],
    ['asks to wait', { status: 429, headers: { 'retry-after': '0' }, error: { message: 'busy' } }],
  ] as const)('pays nothing for a provider that %s', async (_what, answer) => {
    const before = await standing(agentId);
    providerOf(agentId).queue(answer);
    expect((await post(bodyOf(agentId, false))).ok).toBe(false);
    expect(await standing(agentId)).toEqual(before);
    clock.advance(3_600_000);
  });

  test.each([
    ['negative', { input: -5000, output: -10 }],
    ['more than any model takes', { input: 1e300, output: 5 }],
    ['none at all', { input: 0, output: 0 }],
    ['a fraction', { input: 1500.5, output: 0.7 }],
  ])('is charged in whole tokens that were counted here when the report is %s', async (_what, usage) => {
    for (const stream of [false, true]) {
      const before = await standing(agentId);
      providerOf(agentId).queue({ text: 'five words that are said', usage });
      expect((await post(bodyOf(agentId, stream))).status).toBe(200);
      await expect.poll(async () => (await standing(agentId)).tokens - before.tokens).toBeGreaterThan(1000);
      const { tokens, held } = await standing(agentId);
      expect([Number.isSafeInteger(tokens), tokens - before.tokens < 10_000, Math.max(...held)]).toEqual([true, true, 0]);
    }
  });
});

const Batch = z.object({ input: z.array(z.string()) });

/** Embeds with any report of usage; `silent` never answers. */
async function startVectors(report: { now: string }) {
  let asked = 0;
  const http = createServer((request, response) => {
    asked += 1;
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { input } = Batch.parse(JSON.parse(Buffer.concat(parts).toString()));
      if (report.now === 'silent') return;
      const data = input.map((_text, index) => ({ index, embedding: [1, 2] }));
      response.setHeader('content-type', 'application/json');
      response.end(`{"data":${JSON.stringify(data)},"model":"v","usage":{"prompt_tokens":${report.now}}}`);
    });
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const address = http.address();
  if (address === null || typeof address === 'string') throw new Error('expected a port');
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    asked: () => asked,
    [Symbol.dispose]() {
      http.close();
      http.closeAllConnections();
    },
  };
}

test('embeddings are counted whatever the provider reports, and when the caller disconnects', async () => {
  const report = { now: '7' };
  using vectors = await startVectors(report);
  await using one = await startTestServer({
    config: {
      providers: { vec: { type: 'openai-compatible', baseUrl: vectors.url, apiKey: 'k', models: [{ id: 'v', cost }] } },
      embedding: { provider: 'vec', model: 'v', batchSize: 1 },
      agents: { default: { model: 'mock/mock-fast', budgets: { perDayUsd: 5 } } },
    },
  });
  const embed = (signal?: AbortSignal) =>
    fetch(`${one.url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${one.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'v', input: ['two words', 'two words'] }),
      ...(signal && { signal }),
    });
  const used = async () => {
    const { totals } = await one.client.call('usage.report', { groupBy: ['operation'] });
    const { budgets } = await one.client.call('capabilities.introspect', {});
    const cap = budgets.find((other) => other.cap === 'perDayUsd');
    expect(cap?.used).toBe(totals.costUsd);
    return { tokens: totals.inputTokens, held: cap?.reserved };
  };
  let tokens = 0;
  for (const [words, more] of [
    ['7', 14],
    ['-5000', 4],
    ['1e300', 4],
    ['0', 4],
    ['0.6', 2],
  ] as const) {
    report.now = words;
    expect((await embed()).status).toBe(200);
    tokens += more;
    expect(await used(), words).toEqual({ tokens, held: 0 });
  }
  report.now = 'silent';
  const caller = new AbortController();
  const asked = vectors.asked();
  const left = embed(caller.signal).catch(() => undefined);
  await expect.poll(() => vectors.asked()).toBe(asked + 2);
  caller.abort();
  await left;
  await expect.poll(used).toEqual({ tokens: tokens + 4, held: 0 });
});
