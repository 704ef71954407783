import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openCron } from '../features/unattended/cron/testing/open-cron.ts';

const minuteMs = 60_000;
const yearsMs = 1095 * 86_400_000;
const startMs = Date.UTC(2026, 8, 21, 12);
let homeDir: string;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-clock-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

const config = { agents: { default: { model: 'mock/mock-fast', budgets: { perDayTokens: 60_000 } } } };
const everyMinute = { schedule: { kind: 'cron', expr: '* * * * *', tz: 'UTC' }, payload: { kind: 'delivery', text: 'bell' } } as const;

test('a start with the clock three years ahead delays neither jobs nor budgets nor work once it is right', async () => {
  {
    // No clock chip, and no time server yet.
    await using ahead = await openCron({
      clock: createStepClock(startMs + yearsMs),
      homeDir,
      config,
      cron: { builtIn: { memoryLifecycle: { enabled: true } } },
    });
    await ahead.client.call('cron.add', { name: 'bell', ...everyMinute });
    await ahead.pass(minuteMs + 1_000, 10_000);
    await ahead.runs('bell');
    ahead.provider.queue({ text: 'hello', usage: { input: 59_000, output: 900 } });
    expect(await ahead.client.call('agent.execute', { message: 'hello' })).toMatchObject({ finishReason: 'stop' });
    expect(await ahead.client.call('agent.execute', { message: 'hello' })).toMatchObject({ finishReason: 'budget_exceeded' });
  }
  await using right = await openCron({ clock: createStepClock(startMs), homeDir, config, cron: { builtIn: { memoryLifecycle: { enabled: true } } } });
  const { jobs } = await right.client.call('cron.list', {});
  for (const { lifecycle } of jobs)
    expect('nextRunAtMs' in lifecycle && lifecycle.nextRunAtMs !== null && lifecycle.nextRunAtMs - startMs).toBeLessThanOrEqual(86_400_000);
  expect(jobs.length).toBeGreaterThan(1);
  await right.pass(2 * minuteMs + 1_000, 10_000);
  const runs = (await right.runs('bell', 3)).map(({ scheduledForMs }) => scheduledForMs - startMs).filter((ms) => ms < yearsMs);
  expect(runs).toEqual([2 * minuteMs, minuteMs]);
  expect(await right.client.call('agent.execute', { message: 'hello' })).toMatchObject({ finishReason: 'stop' });
});
