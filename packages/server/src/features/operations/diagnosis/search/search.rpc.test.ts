import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canary, failedCall, makeRecord, storeRecords } from '../testing/records.ts';

const clock = createStepClock();
const hourMs = 3_600_000;
let server: TestServer;

const at = (agoMs: number) => ({ startedAtMs: clock.now() - agoMs, endedAtMs: clock.now() - agoMs + 2500 });
const find = async (params: Parameters<typeof server.client.call<'obs.trace.search'>>[1]) =>
  (await server.client.call('obs.trace.search', params)).rows.map(({ sessionKey }) => sessionKey);

beforeAll(async () => {
  server = await startTestServer({ clock });
  await storeRecords(
    server,
    makeRecord({ sessionKey: 'old:web', ...at(72 * hourMs), id: 'tn_old', messageId: 'ms_tn_old' }),
    makeRecord({
      sessionKey: 'fine:web',
      ...at(3 * hourMs),
      channelType: 'gateway',
      channelId: 'kitchen',
      id: 'tn_fine.1',
      messageId: 'ms_tn_fine',
      costNano: 50_000_000,
    }),
    makeRecord({
      sessionKey: 'failed:web',
      ...at(2 * hourMs),
      traceId: 'f'.repeat(32),
      outcome: 'failed',
      endReason: 'provider_degraded',
      error: { kind: 'rate_limit', text: canary },
      steps: [failedCall('exec')],
      model: 'other/big',
    }),
    makeRecord({
      sessionKey: 'tools:web',
      ...at(hourMs),
      outcome: 'degraded',
      steps: [failedCall('read'), { kind: 'tool', name: 'exec it' }],
      agentId: 'second',
    }),
    makeRecord({ sessionKey: 'synthetic:web', ...at(hourMs / 2), synthetic: true }),
  );
});
afterAll(() => server[Symbol.asyncDispose]());

test('selectors are combined, the last two days are searched unless since says more, and synthetic records are left out', async () => {
  expect(await find({ since: '7d' })).toEqual(['tools:web', 'failed:web', 'fine:web', 'old:web']);
  expect(await find({ since: '90m' })).toEqual(['tools:web']);
  expect(await find({ since: '7d', limit: 1 })).toEqual(['tools:web']);
  expect(await find({ since: '1h', includeSynthetic: true })).toEqual(['synthetic:web', 'tools:web']);
  expect(await find({ messageId: 'ms_tn_fine' })).toEqual(['fine:web']);
  expect(await find({ messageId: 'ms_tn_old' })).toEqual([]);
  expect(await find({ messageId: 'ms_tn_old', since: '5d' })).toEqual(['old:web']);
  expect(await find({ traceId: 'f'.repeat(32) })).toEqual(['failed:web']);
  expect(await find({ traceId: 'f'.repeat(32), chatId: 'kitchen' })).toEqual([]);
  expect(await find({ chatId: 'kitchen' })).toEqual(['fine:web']);
});

test.each([
  ['error', ['failed:web']],
  ['not error', ['tools:web', 'fine:web']],
  ['message = ms_tn_fine', ['fine:web']],
  ['not message = ms_tn_fine', ['tools:web', 'failed:web']],
  ['error = rate_limit', ['failed:web']],
  ['error != rate_limit', ['tools:web', 'fine:web']],
  ['outcome in (failed, degraded) and tool = exec', ['failed:web']],
  ['tool = "exec it" or cost >= 0.05', ['tools:web', 'fine:web']],
  ['tool ~ exec', ['tools:web', 'failed:web']],
  ['tool != exec', ['tools:web', 'fine:web']],
  ['tool in (read, write)', ['tools:web']],
  ['model ~ other/ and duration = 2500ms and duration < 3s', ['failed:web']],
  ['agent = second and tools = 2 and toolErrors > 0', ['tools:web']],
  ['channel = gateway and chat = kitchen', ['fine:web']],
  ['channel != gateway', ['tools:web', 'failed:web']],
  ['not channel = gateway', ['tools:web', 'failed:web']],
  ['not (channel ~ gate or channel in (gateway))', ['tools:web', 'failed:web']],
  ['tokens = 110 and input = 100 and output = 10 and cached = 40 and calls = 1', ['tools:web', 'failed:web', 'fine:web']],
  ['session = "x\' or 1=1 --"', []],
] as const)('where %s finds %j', async (where, sessions) => {
  expect(await find({ where })).toEqual(sessions);
});

test('rows have no content; agents find nothing of others', async () => {
  const { rows } = await server.client.call('obs.trace.search', { where: 'error' });
  expect(rows).toMatchObject([{ event: 'turn_failed', lastError: 'rate_limit', toolErrors: 1, costUsd: 0.000001, durationMs: 2500 }]);
  expect(JSON.stringify(rows)).not.toContain('CANARY');
  const limited = await server.as(['admin'], { agents: ['second'] });
  expect((await limited.call('obs.trace.search', { since: '7d' })).rows.map(({ sessionKey }) => sessionKey)).toEqual(['tools:web']);
  await expect((await server.as(['rpc'])).call('obs.trace.search', { since: '1d' })).rejects.toMatchObject({ code: 'insufficient_scope' });
});

test('a request without a selector, and a condition with a mistake, say what is wrong', async () => {
  await expect(server.client.call('obs.trace.search', { limit: 5 })).rejects.toMatchObject({
    code: 'invalid_params',
    rpcCode: -32602,
    message: expect.stringContaining('messageId, traceId, chatId, since, where'),
  });
  for (const params of [{ since: 'yesterday' }, { since: '1d', limit: 1001 }, { since: '1d', where: 'cost >' }])
    await expect(server.client.call('obs.trace.search', params)).rejects.toMatchObject({ code: 'invalid_params' });
});
