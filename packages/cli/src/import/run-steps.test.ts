import { type Client, RateLimitError, PermissionError } from '@gatehouse/client';
import { expect, test } from 'vitest';
import type { Step } from './plan.ts';
import { runSteps } from './run-steps.ts';

const step = (what: string, run: Step['run']): Step => ({ kind: 'secret', what, from: 'here', changes: [], state: 'take', run });

test('a call that comes too fast is repeated when the daemon says so, and a refused step does not stop the others', async () => {
  const calls: string[] = [];
  const waits: number[] = [];
  const call = (async (_method: string, { key }: { key: string }) => {
    calls.push(key);
    if (key === 'A' && calls.length === 1) throw new RateLimitError({ code: 'rate_limited', message: 'Later', retryAfterMs: 100 });
    if (key === 'B') throw new PermissionError({ code: 'denied', message: 'Not this one' });
    return {};
  }) as unknown as Client['call'];
  const steps = ['A', 'B', 'C'].map((key) => step(key, async (send) => void (await send('env.set', { key, value: 'x' }))));
  const results = await runSteps(steps, { call }, { signal: new AbortController().signal, onWait: (ms) => void waits.push(ms) });
  expect(calls).toEqual(['A', 'A', 'B', 'C']);
  expect(waits).toEqual([100]);
  expect(results.map(({ step: { what }, failure }) => [what, failure])).toEqual([
    ['A', undefined],
    ['B', 'Not this one'],
    ['C', undefined],
  ]);
});

test('a token that may not import stops at once', async () => {
  const call = (async () => {
    throw new PermissionError({ code: 'insufficient_scope', message: 'Insufficient scope' });
  }) as unknown as Client['call'];
  const ran: string[] = [];
  const steps = ['A', 'B'].map((key) =>
    step(key, async (send) => {
      ran.push(key);
      await send('env.set', { key, value: 'x' });
    }),
  );
  await expect(runSteps(steps, { call }, { signal: new AbortController().signal, onWait: () => {} })).rejects.toMatchObject({
    code: 'insufficient_scope',
  });
  expect(ran).toEqual(['A']);
});
