import { expect, test } from 'vitest';
import type { Job } from './job-draft.ts';
import { maxJobs, maxTimes, upcomingRuns } from './upcoming.ts';

const hourMs = 3_600_000;
const nowMs = 1_790_000_000_000;

function job(name: string, schedule: Job['schedule'], nextRunAtMs: number | null): Job {
  return {
    id: `cj_${name}`,
    name,
    agentId: 'default',
    source: 'authored',
    schedule,
    lifecycle: { state: 'scheduled', nextRunAtMs, consecutiveDependencyErrors: 0 },
    payload: { kind: 'agent_turn', message: 'Hi' },
  };
}

/** Answers each preview with hourly times after its start. */
const asked: { params: { fromMs: number; count: number } }[] = [];
const client = {
  batch: (calls: typeof asked) => {
    asked.push(...calls);
    return Promise.resolve(
      calls.map(({ params: { fromMs, count } }) => ({
        ok: true,
        result: { timesMs: Array.from({ length: count }, (_, at) => fromMs + (at + 1) * hourMs) },
      })),
    );
  },
};
const upcoming = (jobs: readonly Job[], hours: number) =>
  upcomingRuns(client as never, jobs, nowMs, nowMs + hours * hourMs, new AbortController().signal);

test('lists runs in the window, from the gateway and from intervals, soonest job first', async () => {
  const rows = await upcoming(
    [
      job('cron', { kind: 'cron', expr: '0 * * * *', tz: 'UTC' }, nowMs + hourMs),
      job('every', { kind: 'every', everyMs: 2 * hourMs, anchorMs: 0 }, nowMs + hourMs / 2),
      job('once', { kind: 'at', atMs: nowMs + 2 * hourMs }, nowMs + 2 * hourMs),
      job('later', { kind: 'at', atMs: nowMs + 99 * hourMs }, nowMs + 99 * hourMs),
      {
        ...job('paused', { kind: 'every', everyMs: hourMs, anchorMs: 0 }, 0),
        lifecycle: { state: 'paused', reason: 'operator', nextRunAtMs: 1, consecutiveDependencyErrors: 0 },
      },
    ],
    3,
  );
  expect(rows.map(({ job: { name }, times }) => [name, times.map((atMs) => (atMs - nowMs) / hourMs)])).toEqual([
    ['every', [0.5, 2.5]],
    ['cron', [1, 2, 3]],
    ['once', [2]],
  ]);
  expect(rows.every(({ moreFromMs }) => moreFromMs === undefined)).toBe(true);
  expect(asked).toMatchObject([{ params: { fromMs: nowMs + hourMs } }]);
});

test('reports from when on a frequent job is not drawn completely', async () => {
  const [row] = await upcoming([job('often', { kind: 'every', everyMs: 60_000, anchorMs: 0 }, nowMs)], 24);
  expect(row?.times).toHaveLength(maxTimes);
  expect(row?.moreFromMs).toBe(row?.times.at(-1));
});

test('shows an overdue run at the current time, and limits the number of jobs', async () => {
  const [row] = await upcoming([job('late', { kind: 'at', atMs: nowMs - hourMs }, nowMs - hourMs)], 1);
  expect(row?.times).toEqual([nowMs]);
  const many = Array.from({ length: maxJobs + 5 }, (_, at) => job(`j${at}`, { kind: 'at', atMs: nowMs + at }, nowMs + at));
  expect((await upcoming(many, 1)).length).toBe(maxJobs);
});
