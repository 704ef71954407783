import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createLogger } from '../../../kernel/logger.ts';
import { createRetention } from './retention.ts';

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const { log } = createLogger({ level: 'fatal', redact: (line) => line, write: () => {} });

/** Records with one time each, in memory, and a clock. */
function rig({ busy = false } = {}) {
  const clock = createStepClock();
  const state = { busy, times: [] as number[], steps: [] as number[], fail: false };
  const retention = createRetention({
    clock,
    log,
    isBusy: () => state.busy,
    kept: [
      {
        name: 'turns',
        days: () => 10,
        async prune({ beforeMs, limit }) {
          if (state.fail) throw new Error('The disk is full');
          const due = state.times.filter((atMs) => atMs < beforeMs).slice(0, limit);
          state.times = state.times.filter((atMs) => !due.includes(atMs));
          state.steps.push(due.length);
          return due.length;
        },
        oldest: async () => state.times[0],
      },
    ],
  });
  const old = (count: number) => {
    state.times = Array.from({ length: count }, (_, n) => clock.now() - 11 * dayMs + n);
  };
  /** Time passes in small steps, so that pending promises continue in between. */
  async function pass(ms: number, stepMs = 50): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.advance(stepMs);
      for (let turns = 0; turns < 20; turns += 1) await Promise.resolve();
    }
  }
  return { clock, state, retention, old, pass };
}

test('deletes in small steps with pauses, and again an hour later', async () => {
  const { clock, state, retention, old, pass } = rig();
  await using _retention = retention;
  old(450);
  state.times.push(clock.now());
  expect(await retention.state()).toEqual({
    nextAtMs: clock.now() + 600_000,
    kept: [{ name: 'turns', days: 10, oldestAtMs: clock.now() - 11 * dayMs, deleted: 0 }],
  });
  clock.advance(600_000 - 50);
  expect(state.steps).toEqual([]);
  await pass(50);
  expect(state.steps).toEqual([200]);
  await pass(50);
  expect(state.steps, 'within the pause').toEqual([200]);
  await pass(1_000);
  expect([state.steps, state.times.length]).toEqual([[200, 200, 50], 1]);
  expect((await retention.state()).kept).toMatchObject([{ deleted: 450 }]);
  old(3);
  await pass(hourMs, 1_000);
  expect(state.steps).toEqual([200, 200, 50, 3]);
});

test('waits for turns, but not for ever', async () => {
  const { clock, state, retention, old, pass } = rig({ busy: true });
  await using _retention = retention;
  old(450);
  clock.advance(600_000);
  await pass(29_000, 500);
  expect(state.steps).toEqual([]);
  await pass(2_000, 500);
  expect(state.steps).toEqual([200]);
  state.busy = false;
  await pass(2_000, 500);
  expect(state.steps).toEqual([200, 200, 50]);
});

test('stops at once, between two steps and while it waits', async () => {
  for (const busy of [true, false]) {
    const { clock, state, retention, old, pass } = rig({ busy });
    old(1_000);
    clock.advance(600_000);
    await pass(50);
    await retention[Symbol.asyncDispose]();
    const { length } = state.steps;
    expect(length).toBe(busy ? 0 : 1);
    await pass(hourMs, 60_000);
    expect([state.steps.length, clock.pending()]).toEqual([length, 0]);
  }
});

test('goes by the clock as it is at each step, and continues after a failure', async () => {
  const { clock, state, retention, old, pass } = rig();
  await using _retention = retention;
  old(450);
  clock.advance(600_000);
  await pass(50);
  // It was ahead: what is due is no longer.
  clock.step(-5 * dayMs);
  await pass(1_000);
  expect(state.steps).toEqual([200, 0]);
  clock.step(5 * dayMs);
  state.fail = true;
  await pass(hourMs, 1_000);
  state.fail = false;
  await pass(hourMs + 10_000, 1_000);
  expect([state.steps, state.times.length]).toEqual([[200, 0, 200, 50], 0]);
});
