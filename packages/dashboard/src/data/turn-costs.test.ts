import { expect, test } from 'vitest';
import type { FeedEntry } from './live.ts';
import { createTurnCosts, readNewestCalls } from './turn-costs.ts';

const usageEvent = (turnId: string, part: object = {}) => ({
  kind: 'observability:token_usage',
  payload: { turnId, traceId: `trace-${turnId}`, tokens: { prompt: 100, completion: 10 }, cacheReadTokens: 40, cost: { total: 0.25 }, ...part },
});

function open(newest: Promise<readonly ReturnType<typeof usageEvent>[]> = Promise.resolve([])) {
  let hear: (entry: FeedEntry) => void = () => undefined;
  const listen = (onEvent: typeof hear) => {
    hear = onEvent;
    return () => undefined;
  };
  const costs = createTurnCosts({ listen }, () => newest);
  costs.subscribe(() => undefined);
  const call = (turnId: string, part: object = {}) => hear({ number: 1, atMs: 1, ...usageEvent(turnId, part) });
  return { costs, call };
}

test('sums the calls of a turn under both of its ids', () => {
  const { costs, call } = open();
  call('tn_1', { provider: 'local', model: 'one' });
  call('tn_1', { provider: 'local', model: 'two', tokens: { prompt: 200, completion: 20 }, cacheReadTokens: 160, cost: { total: 0.5 } });
  expect(costs.get().get('tn_1')).toEqual({ costUsd: 0.75, inputTokens: 300, outputTokens: 30, cacheReadTokens: 200, calls: 2, model: 'local/two' });
  expect(costs.get().get('trace-tn_1')).toBe(costs.get().get('tn_1'));
});

test('asks for earlier turns once, when the costs are shown', () => {
  let asked = 0;
  const costs = createTurnCosts({ listen: () => () => undefined }, async () => {
    asked += 1;
    return [];
  });
  expect(asked).toBe(0);
  costs.subscribe(() => undefined);
  costs.subscribe(() => undefined);
  expect(asked).toBe(1);
});

test('an unknown price of any call makes the sum unknown', () => {
  const { costs, call } = open();
  call('tn_1', { cost: null });
  call('tn_1');
  expect(costs.get().get('tn_1')?.costUsd).toBe(null);
});

test('ignores events that are not model calls; drops old turns', () => {
  const { costs, call } = open();
  call('tn_bad', { tokens: 'many' });
  expect(costs.get().size).toBe(0);
  for (let at = 0; at < 600; at++) call(`tn_${at}`);
  expect([costs.get().size, costs.get().has('tn_99'), costs.get().has('tn_100')]).toEqual([1000, false, true]);
});

test('counts earlier turns once, whether the list or an event reports them first', async () => {
  const newest = Promise.resolve([usageEvent('tn_1'), usageEvent('tn_1'), usageEvent('tn_2')]);
  const { costs, call } = open(newest);
  call('tn_2');
  await newest;
  call('tn_1');
  call('tn_3');
  expect(['tn_1', 'tn_2', 'tn_3'].map((id) => costs.get().get(id)?.calls)).toEqual([2, 1, 1]);
  const alone = open(Promise.reject(new Error('gone')));
  await Promise.resolve();
  alone.call('tn_1');
  expect(alone.costs.get().get('tn_1')?.calls).toBe(1);
});

test('other events do not hide the calls of earlier turns, and a call that is listed twice counts once', async () => {
  const entry = (id: number, event: string, turnId: string) => ({ id, event, payload: usageEvent(turnId).payload, timestamp: id });
  const calls = [entry(1, 'observability:token_usage', 'tn_1'), entry(40, 'observability:token_usage', 'tn_2')];
  const newest = await readNewestCalls({
    activity: async ({ kind } = {}) => {
      const entries =
        kind === undefined ? [entry(39, 'message:sent', 'tn_2'), ...calls.slice(1), entry(41, 'observability:token_usage', 'tn_3')] : calls;
      return { entries, count: entries.length };
    },
  });
  const usage = newest.filter(({ kind }) => kind === 'observability:token_usage');
  expect(usage.map(({ payload }) => (payload as { turnId: string }).turnId)).toEqual(['tn_1', 'tn_2', 'tn_3']);
});
