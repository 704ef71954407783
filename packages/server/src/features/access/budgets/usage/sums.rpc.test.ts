import { type FakeProvider, sql, startFakeProvider, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { parseExposition } from '../../../../kernel/testing/exposition.ts';

const sessionKey = { userId: 'ada', channelId: 'sums' };
/** Prices that leave a remainder at every part of a cost. */
const claudeCost = { input: 3.0003, output: 15.0007, cacheRead: 0.3001, cacheWrite: 3.7503 };

let server: TestServer;
let claude: FakeProvider;
beforeAll(async () => {
  claude = await startFakeProvider({ deltas: 5 });
  server = await startTestServer({
    config: {
      providers: {
        claude: { type: 'anthropic', baseUrl: claude.url, apiKey: 'k', models: [{ id: 'c', cost: claudeCost }] },
        free: { type: 'openai-compatible', baseUrl: claude.url, apiKey: 'k', models: [{ id: 'unpriced' }] },
        vectors: { type: 'openai-compatible', baseUrl: claude.url, apiKey: 'k', models: [{ id: 'vec', cost: { input: 0.0203, output: 0 } }] },
      },
      embedding: { provider: 'vectors', model: 'vec', batchSize: 2 },
      agents: {
        default: { model: 'mock/mock-fast', fallbackModels: ['claude/c'], operationModels: { compaction: { model: 'claude/c' } } },
        other: { model: 'free/unpriced' },
      },
    },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await claude.close();
});

const Row = z.object({
  conversation_ref: z.string().nullable(),
  agent_id: z.string(),
  provider: z.string(),
  model: z.string(),
  operation: z.string(),
  outcome: z.string(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  cache_read_tokens: z.number(),
  cache_write_tokens: z.number(),
  cost_nano: z.number().nullable(),
  saved_nano: z.number().nullable(),
});
type Row = z.output<typeof Row>;

async function post(path: string, body: object): Promise<string> {
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  return (await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })).text();
}

function sumsOf(rows: readonly Row[]) {
  const sum = (of: (row: Row) => number | null) => rows.reduce((total, row) => total + (of(row) ?? 0), 0);
  return {
    calls: rows.length,
    input: sum((row) => row.input_tokens),
    output: sum((row) => row.output_tokens),
    cacheRead: sum((row) => row.cache_read_tokens),
    cacheWrite: sum((row) => row.cache_write_tokens),
    nano: sum((row) => row.cost_nano),
    saved: sum((row) => row.saved_nano),
  };
}

const nano = (usd: number | null) => Math.round((usd ?? 0) * 1e9);

test('calls, conversations, agents, reports, events and metrics agree to the last 1e-9 dollar', async () => {
  const events = server.heard('observability:token_usage');
  const say = (message: string, agentId?: string) =>
    server.client.call('agent.execute', { message, sessionKey, ...(agentId !== undefined && { agentId }) });
  const { provider } = server;

  // Cached input; a retry after 529; a fallback that writes its cache; a stream that breaks off; an unpriced model.
  provider.queue({ text: 'one', usage: { input: 1001, output: 17, cacheRead: 333 } });
  const { conversationRef } = await say('first');
  provider.queue({ status: 529, headers: { 'retry-after': '0' }, error: { message: 'busy' } }, { text: 'two', usage: { input: 77, output: 3 } });
  await say('second');
  provider.queue({ status: 500, error: { message: 'broken' } });
  claude.queue({ text: 'three', usage: { input: 3753, output: 7, cacheRead: 1999, cacheWrite: 1703 } });
  await say('third');
  provider.queue({ text: ['a ', 'b ', 'c '], breakAfter: { deltas: 2, by: 'cut' } });
  await post('/api/chat/stream', { message: 'fourth', sessionKey });
  await say('fifth', 'other');

  // Completions, whole and streamed, and embeddings in several batches, one of which fails.
  await post('/v1/chat/completions', { model: 'default', messages: [{ role: 'user', content: 'x' }] });
  await post('/v1/chat/completions', { model: 'default', stream: true, messages: [{ role: 'user', content: 'x' }] });
  await post('/v1/embeddings', { model: 'vec', input: ['one', 'two', 'three', 'four', 'five'] });
  claude.queue({ status: 400, error: { message: 'no' } });
  await post('/v1/embeddings', { model: 'vec', input: ['one', 'two', 'three'] });

  // Enough to be worth a summary, which another model makes.
  for (let n = 0; n < 6; n += 1) await say(`message ${n} ${'with many words that fill the conversation '.repeat(60)}`);
  claude.queue(...Array.from({ length: 20 }, () => ({ text: 'A summary.', usage: { input: 901, output: 31 } })));
  expect(await server.client.call('session.compact', { sessionKey })).toMatchObject({ method: 'summary' });

  const rows = z.array(Row).parse(await sql(server.homeDir, 'SELECT * FROM model_call'));
  const all = sumsOf(rows);
  expect([...new Set(rows.map(({ operation }) => operation))].toSorted()).toEqual(['compaction', 'embedding', 'interactive']);
  expect(rows.filter(({ outcome }) => outcome === 'error').length).toBeGreaterThanOrEqual(4);
  expect(all.cacheWrite).toBe(1703);
  // 1999 read at 0.3001 and 1703 written at 3.7503 instead of 3.0003.
  const fallback = rows.find(({ cache_write_tokens: written }) => written > 0);
  expect(fallback?.saved_nano).toBe(Math.round(3753 * 3000.3) - Math.round(51 * 3000.3) - Math.round(1999 * 300.1) - Math.round(1703 * 3750.3));
  // The successful batches are paid for although another one failed.
  expect(rows.filter(({ operation, outcome }) => operation === 'embedding' && outcome === 'error')).toMatchObject([{ input_tokens: 2 }]);

  // The conversation: its row, its status, its part of the report.
  const inConversation = sumsOf(rows.filter((row) => row.conversation_ref === conversationRef));
  const Conversation = z.object({ input: z.number(), output: z.number(), nano: z.number() });
  const select = 'SELECT input_tokens AS input, output_tokens AS output, cost_nano AS nano FROM conversation WHERE ref = ?';
  expect(Conversation.parse((await sql(server.homeDir, select, conversationRef))[0])).toEqual({
    input: inConversation.input,
    output: inConversation.output,
    nano: inConversation.nano,
  });
  const status = await server.client.call('session.status', { sessionKey });
  expect([status.tokensUsed.totalTokens, nano(status.tokensUsed.totalCost)]).toEqual([
    inConversation.input + inConversation.output,
    inConversation.nano,
  ]);

  // The report, grouped in every way: its totals and the sum of its rows.
  for (const groupBy of [
    ['day'],
    ['agent'],
    ['model'],
    ['provider'],
    ['operation'],
    ['conversation'],
    ['day', 'model'],
    ['agent', 'conversation'],
  ] as const) {
    const report = await server.client.call('usage.report', { groupBy: [...groupBy] });
    const of = (row: (typeof report)['totals']) => ({
      calls: row.calls,
      input: row.inputTokens,
      output: row.outputTokens,
      cacheRead: row.cacheReadTokens,
      cacheWrite: row.cacheWriteTokens,
      nano: nano(row.costUsd),
      saved: nano(row.savedUsd),
    });
    expect(of(report.totals), groupBy.join()).toEqual(all);
    const added = report.rows.map(of).reduce((sum, row) => ({
      calls: sum.calls + row.calls,
      input: sum.input + row.input,
      output: sum.output + row.output,
      cacheRead: sum.cacheRead + row.cacheRead,
      cacheWrite: sum.cacheWrite + row.cacheWrite,
      nano: sum.nano + row.nano,
      saved: sum.saved + row.saved,
    }));
    expect(added, groupBy.join()).toEqual(all);
  }
  const { rows: agents, totals } = await server.client.call('usage.report', { groupBy: ['agent'] });
  const other = agents.find(({ keys }) => keys[0] === 'other');
  expect([other?.costUsd, other?.unpriced]).toEqual([null, other?.calls]);
  expect(totals.unpriced).toBe(other?.unpriced);

  // agent.cacheStats, the events and the metrics.
  const stats = await server.client.call('agent.cacheStats', {});
  expect(stats.providers.reduce((sum, row) => sum + nano(row.totalCost), 0)).toBe(all.nano);
  expect(nano(stats.totalCacheSaved)).toBe(all.saved);
  expect(events.length).toBe(all.calls);
  expect(events.reduce((sum, { cost }) => sum + nano(cost?.total ?? null), 0)).toBe(all.nano);
  expect(events.reduce((sum, { tokens }) => sum + tokens.total, 0)).toBe(all.input + all.output);
  const scrape = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } });
  const samples = parseExposition(await scrape.text());
  const metric = (name: string) => [...samples].filter(([key]) => key.startsWith(name)).reduce((sum, [, value]) => sum + value, 0);
  expect(nano(metric('gatehouse_model_cost_dollars_total'))).toBe(all.nano);
  expect(metric('gatehouse_model_calls_total')).toBe(all.calls);
});
