import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chromiumPath } from '../e2e/lib/browser.ts';
import { breakage, verdictOn, verdictsOn } from './lib/verdicts.ts';
import { reference, startUpstream } from './lib/targets.ts';
import { runCrowd } from './scenarios/crowd.ts';
import { runGraphs } from './scenarios/graphs.ts';
import { historyProduct, runHistory } from './scenarios/history.ts';
import { runHooks } from './scenarios/hooks.ts';
import { runPages } from './scenarios/pages.ts';
import { runSchedule } from './scenarios/schedule.ts';
import { runTools } from './scenarios/tools.ts';

// The scenarios that take longest. They run with `npm run prove -- --only rig`.

test.each([
  ['is slow to take webhooks in, and to answer them', { HOOK_US: '2000', ANSWER_MS: '400' }, 0, ['missed', 'missed', 'met']],
  ['takes longer for a webhook when many came before', { HOOK_US: '2000', LATE_FROM: '310', LATE_US: '20000' }, 330, ['missed', 'met', 'missed']],
] as const)('catches a build that %s', async (_, env, backlog, expected) => {
  const upstream = await startUpstream();
  const size = { rounds: 1, hooks: 40, backlog, ms: 300, turns: 10, settleMs: 200, product: breakage('slow-hooks', env) };
  try {
    const verdicts = await verdictsOn((measures) => runHooks({ upstreamUrl: upstream.url, ...size }, measures));
    const found = ['cpu/R', 'ack p99', 'behind/first'].map((what) => verdicts.get(`hooks ${what}`) ?? 'absent');
    expect(found.map((verdict) => (verdict === 'stretch' || verdict === 'must' ? 'met' : verdict))).toEqual(expected);
  } finally {
    await upstream.stop();
  }
});

test('catches a build whose turns cost more with every message of their history', async () => {
  const upstream = await startUpstream();
  const verdict = async (more: Parameters<typeof historyProduct>[1] = {}) => {
    const subject = await historyProduct(upstream.url, more);
    if (subject === undefined) throw new Error('the product is not built');
    const size = { rounds: 1, turns: 32, long: 400, memories: 1, settleMs: 200 };
    try {
      return await verdictOn('history long/filled', (measures) => runHistory({ subject, ...size }, measures));
    } finally {
      subject.dispose();
    }
  };
  try {
    expect(await verdict(breakage('slow-with-history', { SLOW_MS: '20' }))).toBe('missed');
  } finally {
    await upstream.stop();
  }
});

test.each([
  ['for servers and skills that they do not use', 'tools unused', breakage('slow', { SLOW_MS: '20' })],
  ['much for the tools that they are offered', 'tools some/none', breakage('slow-tools', { SLOW_MS: '20' })],
] as const)('catches a build whose turns pay %s', async (_, measure, broken) => {
  const upstream = await startUpstream();
  try {
    const size = { upstreamUrl: upstream.url, rounds: 1, turns: 5, settleMs: 200, product: broken };
    expect(await verdictOn(measure, (measures) => runTools(size, measures))).toBe('missed');
  } finally {
    await upstream.stop();
  }
});

test('catches a build whose graphs cost more than as many turns', async () => {
  const upstream = await startUpstream();
  // Threads read the environment, not the arguments.
  const broken = { env: { NODE_OPTIONS: `--import ${join(import.meta.dirname, 'broken', 'slow-runs.ts')}`, SLOW_MS: '10' } };
  try {
    const size = { rounds: 1, graphs: 1, ms: 200, settleMs: 200, product: broken };
    expect(await verdictOn('graphs beyond/turns', (measures) => runGraphs({ upstream, ...size }, measures))).toBe('missed');
  } finally {
    await upstream.stop();
  }
});

test('catches a build that lets only half of the sub-agents work at once', async () => {
  const upstream = await startUpstream();
  const narrow = { sections: { security: { agentToAgent: { graphMaxConcurrency: 10, graphMaxGlobalSubAgents: 100 } } } };
  try {
    const size = { upstreamUrl: upstream.url, rounds: 1, delayMs: 300, turns: 20, settleMs: 200 };
    expect(await verdictOn('crowd open', (measures) => runCrowd({ ...size, product: narrow }, measures))).toBe('missed');
  } finally {
    await upstream.stop();
  }
}, 60_000);

test('catches a build that starts slowly and uses too much while agents and jobs are idle', async () => {
  const upstream = await startUpstream();
  const floor = await reference({ name: 'floor', file: 'http-only.ts' });
  const broken = breakage('burdened', { START_MS: '2400', BUSY_MS: '5', HOLD_MB: '250' });
  const size = { agents: 20, jobs: 40, few: 20, starts: 1, idles: 1, idleMs: 1_000, ticks: 0, tickMs: 0, settleMs: 500 };
  try {
    const verdicts = await verdictsOn((measures) => runSchedule({ upstream, floor, ...size, product: broken }, measures));
    expect(['start beyond', 'idle cpu', 'idle rss', 'tick many/few'].map((what) => verdicts.get(`schedule ${what}`))).toEqual([
      'missed',
      'missed',
      'missed',
      'not measured',
    ]);
  } finally {
    await upstream.stop();
  }
});

test('catches a build that reads all jobs for each that is due', async () => {
  const upstream = await startUpstream();
  const floor = await reference({ name: 'floor', file: 'http-only.ts' });
  const size = { agents: 20, jobs: 2_000, few: 20, starts: 0, idles: 0, idleMs: 0, ticks: 1, tickMs: 2_000, settleMs: 500 };
  try {
    // Threads read the environment, not the arguments.
    const broken = { env: { NODE_OPTIONS: `--import ${join(import.meta.dirname, 'broken', 'looks-at-all.ts')}` } };
    expect(await verdictOn('schedule tick many/few', (measures) => runSchedule({ upstream, floor, ...size, product: broken }, measures))).toBe(
      'missed',
    );
  } finally {
    await upstream.stop();
  }
});

test('catches a build in which callers wait for sub-agents, that leaks memory, and that blocks its event loop', async () => {
  const upstream = await startUpstream();
  const broken = breakage('held-up', { WAIT_MS: '400', KEEP_KB: '4096', BLOCK_MS: '75' });
  try {
    const size = { upstreamUrl: upstream.url, rounds: 1, delayMs: 1_000, turns: 20, settleMs: 200 };
    const verdicts = await verdictsOn((measures) => runCrowd({ ...size, product: broken }, measures));
    expect(['turn p99', 'held p99.9', 'rss kept'].map((what) => verdicts.get(`crowd ${what}`))).toEqual(['missed', 'missed', 'missed']);
  } finally {
    await upstream.stop();
  }
}, 60_000);

test.skipIf(chromiumPath === undefined)(
  'catches pages that respond slowly',
  async () => {
    const upstream = await startUpstream();
    // The first inputs of each page are enough, and all of them would take half a minute.
    const busy = 'if ((left -= 1) >= 0) for (const end = performance.now() + 400; performance.now() < end;);';
    const script = `let left = 6; for (const type of ['click', 'keydown']) addEventListener(type, () => { ${busy} }, true);`;
    try {
      const verdicts = await verdictsOn((measures) => runPages({ upstreamUrl: upstream.url, rounds: 1, delayMs: 1_500, script }, measures));
      expect(['task', 'input'].map((what) => verdicts.get(`pages ${what}`))).toEqual(['missed', 'missed']);
    } finally {
      await upstream.stop();
    }
  },
  120_000,
);
