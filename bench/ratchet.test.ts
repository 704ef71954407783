import { join } from 'node:path';
import { expect, it } from 'vitest';
import { judgeRatchet, readBudgets } from './lib/budgets.ts';
import { Measures } from './lib/measures.ts';
import { product, type ProductOptions, reference, startUpstream } from './lib/targets.ts';
import { runRatchet } from './scenarios/ratchet.ts';

/** Returns the verdict on each bound of the ratchet. */
async function verdictsOn(size: { readonly rounds: number; readonly scale: number; readonly settleMs: number }, more: ProductOptions = {}) {
  const upstream = await startUpstream();
  const subject = await product(upstream.url, more);
  if (subject === undefined) throw new Error('the product is not built');
  try {
    const measures = new Measures();
    const bare = await reference({ name: 'R', file: 'raw-http.ts', upstreamUrl: upstream.url });
    const floor = await reference({ name: 'floor', file: 'http-only.ts' });
    await runRatchet({ upstream, bare, floor, product: subject, ...size }, measures);
    return judgeRatchet(readBudgets(), measures).map(({ goal, verdict, median, best }) => ({ id: goal.id, verdict, median, best, bound: goal.must }));
  } finally {
    subject.dispose();
    await upstream.stop();
  }
}

it('the product uses no more CPU and memory than accepted', { timeout: 120_000 }, async () => {
  const verdicts = await verdictsOn({ rounds: 5, scale: 0.3, settleMs: 3_000 });
  for (const { id, median, best, bound } of verdicts) console.log(`${id}: ${median.toFixed(2)}, at least ${best.toFixed(2)}, bound ${bound}`);
  expect(verdicts.map(({ id }) => id)).toEqual(['G1', 'G2', 'G9', 'G7']);
  expect(verdicts.filter(({ verdict }) => verdict === 'missed' || verdict === 'not measured')).toEqual([]);
});

it('a build that burns CPU on every request and while it starts, and holds memory, exceeds each bound', { timeout: 120_000 }, async () => {
  const broken = (name: string) => ['--import', join(import.meta.dirname, 'broken', `${name}.ts`)];
  const verdicts = await verdictsOn(
    { rounds: 1, scale: 0.2, settleMs: 300 },
    { nodeArgs: [...broken('slow'), ...broken('burdened')], env: { SLOW_MS: '5', START_MS: '600', BUSY_MS: '0', HOLD_MB: '250' } },
  );
  expect(verdicts.map(({ id, verdict }) => [id, verdict])).toEqual([
    ['G1', 'missed'],
    ['G2', 'missed'],
    ['G9', 'missed'],
    ['G7', 'missed'],
  ]);
});
