import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judge, judgeAll, readBudgets, type Goal } from './lib/budgets.ts';
import { Measures } from './lib/measures.ts';
import { breakage, verdictOn } from './lib/verdicts.ts';
import { reference, type ReferenceOptions, startReference, startUpstream, type Subject } from './lib/targets.ts';
import { compareCompletions, wrongAnswers } from './scenarios/compare.ts';
import { runCompletions, type Samples } from './scenarios/completions.ts';
import { bareEvents, runFanout } from './scenarios/fanout.ts';
import { runHeld } from './scenarios/held.ts';
import { runLoop } from './scenarios/loop.ts';
import { runSoak } from './scenarios/soak.ts';

const goal: Goal = { id: 'X', what: 'x', measure: 'x', unit: '×', better: 'lower', must: 2, stretch: 1 };

describe('the verdict on a goal', () => {
  it.each([
    ['stretch', [0.9, 1, 3], 1],
    ['must', [1.5, 2, 9], 1],
    ['within noise', [1.9, 2.5, 3], 1],
    ['missed', [2.1, 2.5, 3], 1],
    ['must', [2.1, 2.5, 3], 1.25],
    ['not measured', [], 1],
  ] as const)('is "%s" for rounds of %j', (verdict, rounds, tolerance) => {
    expect(judge(goal, rounds, tolerance).verdict).toBe(verdict);
  });

  it('is reversed where higher is better', () => {
    const rate: Goal = { ...goal, better: 'higher', must: 0.9, stretch: 1 };
    expect([[1.1], [0.95], [0.5, 0.6, 0.95], [0.5, 0.6]].map((rounds) => judge(rate, rounds, 1).verdict)).toEqual([
      'stretch',
      'must',
      'within noise',
      'missed',
    ]);
  });
});

describe('the rig, with the reference instead of the product', () => {
  const slow = { nodeArgs: ['--import', join(import.meta.dirname, 'broken', 'slow.ts')], env: { SLOW_MS: '3' } };
  let stack: AsyncDisposableStack;
  let healthy: Samples;
  let broken: Samples;

  beforeAll(async () => {
    stack = new AsyncDisposableStack();
    const upstream = await startUpstream();
    stack.defer(upstream.stop);
    const up = async (name: string, more: { env?: Record<string, string>; nodeArgs?: readonly string[] } = {}) => {
      const { target, running } = await startReference({ name, file: 'raw-http.ts', upstreamUrl: upstream.url, ...more });
      stack.defer(running.stop);
      return target;
    };
    const references = [upstream.target, await up('R'), await up('F', { env: { FULL: '1' } })];
    const run = (product: (typeof references)[number], rounds: number): Promise<Samples> =>
      runCompletions({ upstream, targets: [...references, { ...product, name: 'product' }], names: ['json16', 'sse-fast8'], rounds, scale: 0.15 });
    healthy = await run(await up('same'), 2);
    broken = await run(await up('slow', slow), 1);
  }, 60_000);
  afterAll(() => stack.disposeAsync());

  const verdictsOf = (samples: Samples): Map<string, string> => {
    const measures = new Measures();
    compareCompletions(samples, 'product', measures);
    return new Map(judgeAll(readBudgets(), measures, 1.25).map((one) => [one.goal.measure, one.verdict]));
  };

  it('counts whole and streamed answers and their CPU', () => {
    const sample = healthy.get('R')?.get('sse-fast8')?.[0];
    expect(sample).toMatchObject({ failed: 0, deltasPerAnswer: 100, errors: {} });
    expect(sample?.good).toBeGreaterThan(10);
    expect(sample?.cpuPerDelta).toBeGreaterThan(0.1);
    expect(sample?.ttft50).toBeGreaterThan(0);
    expect(sample?.ttft50).toBeLessThan(sample?.p50 ?? 0);
    expect(healthy.get('R')?.get('json16')?.[0]?.cpuPerAnswer).toBeGreaterThan(10);
    expect(wrongAnswers(healthy)).toEqual([]);
  });

  it('lets a server as fast as the reference pass', () => {
    const verdicts = verdictsOf(healthy);
    expect(verdicts.get('json16 cpu/R')).toMatch(/stretch|must/);
    expect(verdicts.get('errors')).toBe('stretch');
    expect(verdicts.get('idle rss')).toBe('not measured');
  });

  it('catches a build that burns CPU on every request', () => {
    const verdicts = verdictsOf(broken);
    expect(verdicts.get('json16 cpu/R')).toBe('missed');
    expect(verdicts.get('json16 cpu/F')).toBe('missed');
    expect(verdicts.get('sse-fast8 delta-cpu/R')).toBe('missed');
  });

  it('does not call a server fast that answers wrongly', () => {
    const first = [...healthy.values()][1]?.get('json16')?.[0];
    if (!first) throw new Error('no sample');
    const wrong: Samples = new Map([
      [
        'product',
        new Map([
          [
            'json16',
            [
              { ...first, upstreamPerAnswer: 2 },
              { ...first, good: 0, errors: { 'status 500': 9 } },
            ],
          ],
          ['sse-fast8', [{ ...first, deltasPerAnswer: 37 }]],
        ]),
      ],
    ]);
    expect(wrongAnswers(wrong)).toEqual([
      expect.stringContaining('2.00 model calls'),
      expect.stringContaining('no good answer'),
      expect.stringContaining('37 deltas'),
    ]);
  });
});

describe('the rig for memory, delays and fan-out', () => {
  const server = (file: ReferenceOptions['file'], more: Partial<ReferenceOptions> = {}): Promise<Subject> =>
    reference({ name: 'product', file, ...more });

  it('catches a build whose idle connections use too much memory', async () => {
    const verdict = (kind: 'sse' | 'ws', subject: Subject) =>
      verdictOn(`idle ${kind} mb/1000`, (measures) => runHeld({ subject, kind, rounds: 1, step: 200, settleMs: 200 }, measures));
    const heavy = breakage('heavy', { HOLD_KB: '64' });
    expect(await verdict('ws', await server('bare-ws.ts'))).toMatch(/stretch|must/);
    expect(await verdict('ws', await server('bare-ws.ts', heavy))).toBe('missed');
    expect(await verdict('sse', await server('bare-events.ts', heavy))).toBe('missed');
  });

  it('catches a build that leaks memory', async () => {
    const upstream = await startUpstream();
    const verdict = async (more: Partial<ReferenceOptions>) => {
      const subject = await server('raw-http.ts', { upstreamUrl: upstream.url, ...more });
      return verdictOn('soak rss growth', (measures) => runSoak({ subject, turns: 600, connects: 60, warm: 0.5, settleMs: 200 }, measures));
    };
    try {
      expect(await verdict({})).toMatch(/stretch|must/);
      expect(await verdict(breakage('leaky', { LEAK_KB: '64' }))).toBe('missed');
    } finally {
      await upstream.stop();
    }
  });

  it('catches a build that blocks its event loop', async () => {
    const upstream = await startUpstream();
    try {
      const subject = await server('raw-http.ts', { upstreamUrl: upstream.url, ...breakage('blocking', { BLOCK_MS: '30' }) });
      expect(await verdictOn('loop delay p99', (measures) => runLoop({ subject, rounds: 1, ms: 1_000, maxStreams: 40 }, measures))).toBe('missed');
    } finally {
      await upstream.stop();
    }
  });

  it('catches a build that pays too much for each reader of an event', async () => {
    const bare = await startReference({ name: 'bare', file: 'bare-events.ts' });
    const slow = await startReference({ name: 'product', file: 'bare-events.ts', ...breakage('slow-writes', { WRITE_US: '30' }) });
    try {
      const sources = { bare: bareEvents(bare.target), product: bareEvents(slow.target) };
      expect(await verdictOn('fanout cpu/bare', (measures) => runFanout({ ...sources, readers: 100, events: 50, rounds: 1 }, measures))).toBe(
        'missed',
      );
    } finally {
      await bare.running.stop();
      await slow.running.stop();
    }
  });
});
