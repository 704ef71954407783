import { runHttpLoad } from '../lib/client.ts';
import type { HttpLoadResult } from '../lib/http-load.ts';
import { cpuUs } from '../lib/proc.ts';
import type { Target, Upstream } from '../lib/targets.ts';

export interface Completion {
  readonly what: string;
  readonly model: 'mock-fast' | 'mock-p10';
  readonly stream: boolean;
  readonly connections: number;
  readonly ms: number;
  readonly staggerMs?: number;
  /** Names of the targets that run it. */
  readonly targets: readonly string[];
}

/** Streams have 100 deltas of about six characters. */
export const completions = {
  json16: {
    what: 'whole answers, 16 at a time',
    model: 'mock-fast',
    stream: false,
    connections: 16,
    ms: 1500,
    targets: ['R', 'F', 'R again', 'product'],
  },
  json64: { what: 'whole answers, 64 at a time', model: 'mock-fast', stream: false, connections: 64, ms: 1500, targets: ['R', 'product'] },
  json1: { what: 'whole answers, one at a time', model: 'mock-fast', stream: false, connections: 1, ms: 800, targets: ['direct', 'R', 'product'] },
  'sse-fast8': { what: 'streams at full speed, 8 at a time', model: 'mock-fast', stream: true, connections: 8, ms: 1500, targets: ['R', 'product'] },
  'sse-fast1': {
    what: 'streams at full speed, one at a time',
    model: 'mock-fast',
    stream: true,
    connections: 1,
    ms: 800,
    targets: ['direct', 'R', 'product'],
  },
  'sse-p10x32': {
    what: '32 streams at once, a delta per 10 ms each',
    model: 'mock-p10',
    stream: true,
    connections: 32,
    ms: 2100,
    staggerMs: 1000,
    targets: ['direct', 'R', 'product'],
  },
} as const satisfies Record<string, Completion>;
export type CompletionName = keyof typeof completions;
export const completionNames = Object.keys(completions).filter((name): name is CompletionName => name in completions);

export interface Sample extends HttpLoadResult {
  readonly rate: number;
  readonly failed: number;
  readonly cpuPerAnswer: number;
  readonly cpuPerDelta: number;
  readonly deltasPerAnswer: number;
  readonly upstreamPerAnswer: number;
}
/** Target → scenario → one sample per round. */
export type Samples = Map<string, Map<CompletionName, Sample[]>>;

export interface RunOptions {
  readonly upstream: Upstream;
  readonly targets: readonly Target[];
  readonly names: readonly CompletionName[];
  readonly rounds: number;
  /** Factor on the durations. */
  readonly scale: number;
  onRound?(round: number): void;
}

/** Targets take turns within each scenario, in reverse order every other round; the first round warms up and is not counted. */
export async function runCompletions(options: RunOptions): Promise<Samples> {
  const samples: Samples = new Map();
  for (let round = -1; round < options.rounds; round += 1) {
    for (const name of options.names) {
      const scenario: Completion = completions[name];
      const targets = options.targets.filter((target) => scenario.targets.includes(target.name));
      for (const target of round % 2 === 0 ? targets : targets.toReversed()) {
        const sample = await measure(target, scenario, options);
        if (round < 0) continue;
        const byName = samples.get(target.name) ?? new Map<CompletionName, Sample[]>();
        samples.set(target.name, byName.set(name, [...(byName.get(name) ?? []), sample]));
      }
    }
    options.onRound?.(round);
  }
  return samples;
}

const messages = [
  { role: 'system', content: 'You are a terse assistant.' },
  { role: 'user', content: 'Say something about gateways, in about one hundred words, please.' },
];

async function measure(target: Target, scenario: Completion, { upstream, scale }: RunOptions): Promise<Sample> {
  const body = { model: target.model(scenario.model), messages, ...(scenario.stream && { stream: true, stream_options: { include_usage: true } }) };
  const { connections, stream } = scenario;
  const load = { url: `${target.url}/v1/chat/completions`, headers: target.headers, body, connections, stream, ms: scenario.ms * scale };
  const servedBefore = await upstream.served();
  const cpuBefore = target.pid === undefined ? NaN : cpuUs(target.pid);
  const result = await runHttpLoad(scenario.staggerMs === undefined ? load : { ...load, staggerMs: scenario.staggerMs * Math.min(1, scale) });
  const cpu = target.pid === undefined ? NaN : cpuUs(target.pid) - cpuBefore;
  // The question itself is a request that the provider counts.
  const upstreamCalls = (await upstream.served()) - servedBefore - 1;
  return {
    ...result,
    rate: (result.good / result.wallMs) * 1000,
    failed: Object.values(result.errors).reduce((sum, count) => sum + count, 0),
    cpuPerAnswer: cpu / result.good,
    cpuPerDelta: stream ? cpu / result.deltas : NaN,
    deltasPerAnswer: stream ? result.deltas / result.good : NaN,
    upstreamPerAnswer: upstreamCalls / result.good,
  };
}
