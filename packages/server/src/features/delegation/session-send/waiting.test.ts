import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { Waiting } from './waiting.ts';

const end = { response: 'x', errorKind: null, announced: false, turnsCompleted: 0, tokens: 0, costNano: 0 };

test('an aborted caller stops waiting, before or during the wait', async () => {
  const clock = createStepClock();
  const waiting = new Waiting(clock);
  const gone = waiting.wait('ss_1', { from: undefined, to: 'cv_1', ms: 1000, signal: AbortSignal.abort() });
  expect(waiting.has('ss_1')).toBe(false);
  await expect(gone.ended).rejects.toMatchObject({ code: 'cancelled' });
  const aborter = new AbortController();
  const going = waiting.wait('ss_2', { from: undefined, to: 'cv_1', ms: 1000, signal: aborter.signal });
  expect(waiting.has('ss_2')).toBe(true);
  aborter.abort();
  expect(waiting.has('ss_2')).toBe(false);
  await expect(going.ended).rejects.toMatchObject({ code: 'cancelled' });
});

test('a wait ends once: by its answer or its timeout', async () => {
  const clock = createStepClock();
  const waiting = new Waiting(clock);
  const { signal } = new AbortController();
  const answered = waiting.wait('ss_1', { from: 'cv_2', to: 'cv_1', ms: 1000, signal });
  waiting.end('ss_1', end);
  const late = waiting.wait('ss_2', { from: 'cv_2', to: 'cv_1', ms: 1000, signal });
  clock.advance(1000);
  waiting.end('ss_2', end);
  expect(await answered.ended).toEqual(end);
  await expect(late.ended).rejects.toMatchObject({ code: 'timeout' });
});
