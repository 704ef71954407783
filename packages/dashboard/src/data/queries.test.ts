import { QueryObserver } from '@tanstack/react-query';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { FeedEntry } from './live.ts';
import { createQueries, reload } from './queries.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function watchedQueries(quota?: { pauseMs: () => number }) {
  const listeners = new Set<(entry: FeedEntry) => void>();
  const queries = createQueries(
    {
      listen(onEvent) {
        listeners.add(onEvent);
        return () => listeners.delete(onEvent);
      },
    },
    quota,
  );
  const loads: { readonly signal: AbortSignal; readonly answer: (value: string) => void }[] = [];
  const observer = new QueryObserver<string>(queries.client, {
    queryKey: ['cron.list', 'default'],
    queryFn: ({ signal }) => new Promise<string>((answer) => loads.push({ signal, answer })),
    meta: { staleness: { changedBy: ['scheduler:cron_'], settleMs: 400 } },
  });
  const leave = observer.subscribe(() => undefined);
  const emit = (kind: string): void => listeners.forEach((listener) => listener({ number: 1, kind, payload: {}, atMs: 0 }));
  return { queries, observer, loads, leave, emit, listeners };
}

test('events of a declared kind, and gaps, load again once they settle', async () => {
  const { observer, loads, emit } = watchedQueries();
  loads[0]?.answer('first');
  await vi.advanceTimersByTimeAsync(1);
  emit('scheduler:heartbeat_tick');
  await vi.advanceTimersByTimeAsync(1000);
  expect(loads).toHaveLength(1);
  emit('scheduler:cron_started');
  await vi.advanceTimersByTimeAsync(300);
  emit('scheduler:cron_completed');
  await vi.advanceTimersByTimeAsync(399);
  expect(loads).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(loads).toHaveLength(2);
  expect(observer.getCurrentResult()).toMatchObject({ data: 'first', isFetching: true });
  emit('gap');
  await vi.advanceTimersByTimeAsync(400);
  expect(loads[1]?.signal.aborted).toBe(true);
  loads[2]?.answer('second');
  await vi.advanceTimersByTimeAsync(1);
  expect(observer.getCurrentResult()).toMatchObject({ data: 'second', isFetching: false });
});

test('a first load in flight starts over on reload', async () => {
  const { queries, observer, loads } = watchedQueries();
  void reload(queries.client, ['cron.list', 'default']);
  await vi.advanceTimersByTimeAsync(1);
  expect([loads.length, loads[0]?.signal.aborted]).toEqual([2, true]);
  loads[0]?.answer('older');
  loads[1]?.answer('newer');
  await vi.advanceTimersByTimeAsync(1);
  expect(observer.getCurrentResult()).toMatchObject({ data: 'newer', error: null });
});

test('data is forgotten with its last reader, and with the session', async () => {
  const { queries, loads, leave, emit, listeners } = watchedQueries();
  loads[0]?.answer('first');
  await vi.advanceTimersByTimeAsync(1);
  emit('scheduler:cron_started');
  queries.close();
  expect(queries.client.getQueryCache().getAll()).toEqual([]);
  expect(listeners.size).toBe(0);
  await vi.advanceTimersByTimeAsync(1000);
  expect(loads).toHaveLength(1);
  leave();
});

test('with little of the request limit left, events load once after the pause, however many follow', async () => {
  const { observer, loads, emit } = watchedQueries({ pauseMs: () => 10_000 });
  loads[0]?.answer('first');
  await vi.advanceTimersByTimeAsync(1);
  for (let second = 0; second < 9; second += 1) {
    emit('scheduler:cron_completed');
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(loads).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(loads).toHaveLength(2);
  expect(observer.getCurrentResult()).toMatchObject({ data: 'first', isFetching: true });
});
