import { setTimeout as sleep } from 'node:timers/promises';
import { runHttpLoad } from '../lib/client.ts';
import { lengthen } from '../lib/fill.ts';
import type { Measures } from '../lib/measures.ts';
import { cpuUs } from '../lib/proc.ts';
import { product, type Product, type ProductOptions, type Target } from '../lib/targets.ts';

/** A window that a hundred messages fill: older messages are history that no model is shown. */
const contextWindow = 2048;

/** Agents that differ in their memory alone. */
const agents = {
  forgetful: { model: 'mock/mock-fast', maxConcurrentRuns: 1000, memory: { recall: { enabled: false } } },
  mindful: { model: 'mock/mock-fast', maxConcurrentRuns: 1000, memory: { recall: { enabled: true } } },
};

export const historyProduct = (upstreamUrl: string, more: ProductOptions = {}): Promise<Product | undefined> =>
  product(upstreamUrl, { agents, sections: { embedding: { provider: 'hashing' } }, contextWindow, ...more });

/** Cost of the turns of a case, by round: microseconds of CPU of the server, all threads. */
export type HistorySamples = Map<string, number[]>;

interface Case {
  readonly name: string;
  readonly agent: keyof typeof agents;
  /** Messages of the history; with 0 each turn starts a new conversation. */
  readonly messages: number;
  readonly keys: readonly string[];
}

export interface HistoryOptions {
  readonly subject: Product;
  readonly rounds: number;
  /** Turns of a case in a round. */
  readonly turns: number;
  /** Messages of the long histories. */
  readonly long: number;
  /** Memories that the agent of the last case has. */
  readonly memories: number;
  readonly settleMs: number;
}

/** Measures a turn with short, long and very long histories, and with memory off, on and full. */
export async function runHistory(options: HistoryOptions, measures: Measures): Promise<HistorySamples> {
  const { subject, rounds, turns, long } = options;
  // Short histories are many, so that the measured turns do not make them long; a longer one grows little by comparison.
  const keysOf = (name: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${name}-${n}:bench`);
  const cases: readonly Case[] = [
    { name: '10 messages', agent: 'forgetful', messages: 10, keys: keysOf('short', turns) },
    { name: '100 messages', agent: 'forgetful', messages: 100, keys: keysOf('filled', 16) },
    { name: `${long} messages`, agent: 'forgetful', messages: long, keys: keysOf('long', 16) },
    { name: 'memory on', agent: 'mindful', messages: 100, keys: keysOf('mindful', 16) },
  ];
  await prepare(options, cases);
  const running = await subject.start();
  try {
    const target = subject.target(running);
    await sleep(options.settleMs);
    const samples: HistorySamples = new Map();
    const take = async (all: readonly Case[]): Promise<void> => {
      for (let round = -1; round < rounds; round += 1)
        for (const one of round % 2 === 0 ? all : all.toReversed()) {
          const cpu = await cost(target, one, turns);
          if (round >= 0) samples.set(one.name, [...(samples.get(one.name) ?? []), cpu]);
        }
    };
    await take(cases);
    await remember(target, options.memories);
    await sleep(options.settleMs);
    await take(cases.filter(({ agent }) => agent === 'mindful').map((one) => ({ ...one, name: `${options.memories} memories` })));
    const ratio = (measure: string, over: string, under: string): void =>
      measures.add(measure, ...(samples.get(over) ?? []).map((cpu, round) => cpu / (samples.get(under)?.[round] ?? NaN)));
    ratio('history long/filled', `${long} messages`, '100 messages');
    ratio('history filled/short', '100 messages', '10 messages');
    ratio('memory on/off', 'memory on', '100 messages');
    ratio('memory full/on', `${options.memories} memories`, 'memory on');
    return samples;
  } finally {
    await running.stop();
  }
}

/** Creates a conversation with its first turn; the rest of its history is inserted while the daemon is stopped. */
async function prepare({ subject, settleMs }: HistoryOptions, cases: readonly Case[]): Promise<void> {
  const running = await subject.start();
  const target = subject.target(running);
  for (const one of cases) await cost(target, one, one.keys.length);
  await sleep(settleMs);
  await running.stop();
  for (const { keys, messages } of cases) lengthen(subject.dataDir, keys, messages);
}

async function cost(target: Target, { agent, keys, name }: Case, turns: number): Promise<number> {
  if (target.pid === undefined) throw new Error(`${target.name} has no process`);
  const bodies = keys.map((sessionKey) => ({ agentId: agent, sessionKey, message: 'What did the lantern in the harbour say?' }));
  const before = cpuUs(target.pid);
  const load = { url: `${target.url}/api/chat`, headers: target.headers, body: undefined, bodies, connections: 8, stream: false };
  const { good, errors } = await runHttpLoad({ ...load, requests: turns, ms: 60_000 });
  if (good !== turns) throw new Error(`${target.name}, ${name}: ${good} of ${turns} turns were answered: ${JSON.stringify(errors)}`);
  return (cpuUs(target.pid) - before) / turns;
}

async function remember(target: Target, memories: number): Promise<void> {
  const bodies = Array.from({ length: memories }, (_, n) => ({
    jsonrpc: '2.0',
    id: n,
    method: 'memory.store',
    params: { agentId: 'mindful', content: `The lantern ${n} of the harbour is lit at ${n % 24} o'clock by keeper ${n * 31}.` },
  }));
  const load = { url: `${target.url}/rpc`, headers: target.headers, body: undefined, bodies, connections: 16, stream: false };
  const { good, errors } = await runHttpLoad({ ...load, requests: memories, ms: 120_000 });
  if (good !== memories) throw new Error(`${good} of ${memories} memories were stored: ${JSON.stringify(errors)}`);
}
