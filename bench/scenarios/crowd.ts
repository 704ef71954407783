import { setTimeout as sleep } from 'node:timers/promises';
import { crowd, startCrowd } from '../lib/crowd.ts';
import type { Measures } from '../lib/measures.ts';
import { cpuUs, rssMb } from '../lib/proc.ts';
import { percentile } from '../lib/stats.ts';
import type { ProductOptions, Target } from '../lib/targets.ts';

/** Two hundred sub-agents in twenty graphs at once, and one concurrent caller. */
export interface CrowdSample {
  /** Model calls that were open at once. */
  readonly mostOpen: number;
  /** Milliseconds of a turn of another conversation, without and with all of them running. */
  readonly alone: { readonly p50: number; readonly p99: number };
  readonly concurrent: { readonly p50: number; readonly p99: number; readonly max: number };
  /** How late timers of the server fired, milliseconds, and how much of that their thread spent working. */
  readonly loop: Spread;
  readonly held: Spread;
  /** Resident memory of the server, MB: the first and the last after garbage was collected. */
  readonly rss: { readonly before: number; readonly peak: number; readonly after: number };
  /** CPU for each sub-agent, microseconds, including the concurrent turns. */
  readonly cpuPerRun: number;
}

interface Spread {
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface CrowdOptions {
  readonly upstreamUrl: string;
  readonly rounds: number;
  /** How long the model takes for each answer: a lane that waited for another conversation would wait this long. */
  readonly delayMs: number;
  /** Turns of the caller without other load. */
  readonly turns: number;
  readonly settleMs: number;
  readonly product?: ProductOptions;
}

/** Pause between two turns of the caller. */
const pauseMs = 25;

/** Measures whether other turns wait for two hundred sub-agents, and what those leave in memory. */
export async function runCrowd(options: CrowdOptions, measures: Measures): Promise<CrowdSample[]> {
  const { rounds, settleMs } = options;
  await using server = await startCrowd(options.upstreamUrl, options);
  const { running, target } = server;
  // The first one fills caches and compiles.
  await server.run();
  const samples: CrowdSample[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await sleep(settleMs);
    await running.ask('collect');
    const before = rssMb(running.pid);
    const alone = await turns(target, (sent) => sent < options.turns);
    let [peak, isOver] = [before, false];
    const cpu = cpuUs(running.pid);
    await running.ask('watch');
    const [{ mostOpen }, concurrent] = await Promise.all([
      server.run().finally(() => (isOver = true)),
      turns(target, () => {
        peak = Math.max(peak, rssMb(running.pid));
        return !isOver;
      }),
    ]);
    const { delays, held } = await running.ask('delays');
    const cpuPerRun = (cpuUs(running.pid) - cpu) / (crowd.graphs * crowd.layers * crowd.wide);
    await sleep(settleMs);
    await running.ask('collect');
    samples.push({
      mostOpen,
      alone: { p50: percentile(alone, 0.5), p99: percentile(alone, 0.99) },
      concurrent: { p50: percentile(concurrent, 0.5), p99: percentile(concurrent, 0.99), max: concurrent.at(-1) ?? NaN },
      loop: spread(delays),
      held: spread(held),
      rss: { before, peak, after: rssMb(running.pid) },
      cpuPerRun,
    });
  }
  measures.add('crowd open', ...samples.map(({ mostOpen }) => mostOpen));
  measures.add('crowd turn p99', ...samples.map(({ concurrent }) => concurrent.p99));
  measures.add('crowd held p99.9', ...samples.map(({ held }) => held.p999));
  measures.add('crowd rss peak', ...samples.map(({ rss }) => rss.peak - rss.before));
  measures.add('crowd rss kept', ...samples.map(({ rss }) => rss.after - rss.before));
  return samples;
}

function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { p99: percentile(sorted, 0.99), p999: percentile(sorted, 0.999), max: sorted.at(-1) ?? NaN };
}

let conversations = 0;

/** Runs turns of one caller, each in a new conversation; returns how long each took, sorted. */
async function turns({ url, headers }: Target, more: (sent: number) => boolean): Promise<number[]> {
  const took: number[] = [];
  while (more(took.length)) {
    const body = JSON.stringify({ agentId: 'default', sessionKey: `concurrent-${(conversations += 1)}:bench`, message: 'Which parts are left?' });
    const sentAt = performance.now();
    const response = await fetch(`${url}/api/chat`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`a concurrent turn: ${response.status} ${text.slice(0, 200)}`);
    took.push(performance.now() - sentAt);
    await sleep(pauseMs);
  }
  return took.toSorted((a, b) => a - b);
}
