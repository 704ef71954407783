import { setTimeout as sleep } from 'node:timers/promises';
import type { Measures } from '../lib/measures.ts';
import { cpuUs, rssMb } from '../lib/proc.ts';
import { pairedRatios } from '../lib/stats.ts';
import type { Startable, Subject, Upstream } from '../lib/targets.ts';
import { runCompletions, type Sample } from './completions.ts';

export interface RatchetOptions {
  readonly upstream: Upstream;
  /** A completion on bare `node:http`. */
  readonly bare: Subject;
  /** A server that only answers. */
  readonly floor: Startable;
  readonly product: Subject;
  readonly rounds: number;
  /** Factor on the durations of the load. */
  readonly scale: number;
  /** Time from the start until memory is read: longer than the product takes to return the memory of its start. */
  readonly settleMs: number;
}

/** Adds the measures of the ratchet: each is a ratio to a reference in the same round, of CPU time or memory, never of wall time. */
export async function runRatchet(options: RatchetOptions, measures: Measures): Promise<void> {
  await runTurns(options, measures);
  await runStarts(options, measures);
}

async function runTurns({ upstream, bare, product, rounds, scale }: RatchetOptions, measures: Measures): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const up = async (server: Subject) => {
    const running = await server.start();
    stack.defer(running.stop);
    return server.target(running);
  };
  const targets = [await up(bare), await up(product)];
  const samples = await runCompletions({ upstream, targets, names: ['json16', 'sse-fast8'], rounds, scale });
  const ratios = (name: 'json16' | 'sse-fast8', figure: (sample: Sample) => number) => {
    const figures = (target: string) => (samples.get(target)?.get(name) ?? []).map(figure);
    return pairedRatios(figures(product.name), figures(bare.name));
  };
  measures.add('ratchet json16 cpu/R', ...ratios('json16', ({ cpuPerAnswer }) => cpuPerAnswer));
  measures.add('ratchet sse-fast8 delta-cpu/R', ...ratios('sse-fast8', ({ cpuPerDelta }) => cpuPerDelta));
}

/** The first round is not counted: it creates the database and fills the compile cache. Memory is read in the last one, at rest. */
async function runStarts({ floor, product, rounds, settleMs }: RatchetOptions, measures: Measures): Promise<void> {
  const once = async (server: Startable, waitMs: number) => {
    const running = await server.start();
    const cpu = cpuUs(running.pid);
    await sleep(waitMs);
    const rss = rssMb(running.pid);
    await running.stop();
    return { cpu, rss };
  };
  for (let round = -1; round < rounds; round += 1) {
    const isLast = round === rounds - 1;
    const least = await once(floor, isLast ? settleMs : 0);
    const own = await once(product, isLast || round < 0 ? settleMs : 0);
    if (round < 0) continue;
    measures.add('ratchet start cpu/http-only', own.cpu / least.cpu);
    if (isLast) measures.add('ratchet idle rss/http-only', own.rss / least.rss);
  }
}
