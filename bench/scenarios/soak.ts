import { setTimeout as sleep } from 'node:timers/promises';
import { runChurn, runHttpLoad } from '../lib/client.ts';
import type { Measures } from '../lib/measures.ts';
import { rssMb } from '../lib/proc.ts';
import type { Subject, Target } from '../lib/targets.ts';
import { openingRequest } from './held.ts';

export interface SoakSample {
  readonly turns: number;
  readonly connects: number;
  /** Connections that never got a byte. */
  readonly unanswered: number;
  /** Resident memory after each round, MB. */
  readonly looksMb: readonly number[];
}

interface SoakOptions {
  readonly subject: Subject;
  /** Two thirds whole, one third streamed. */
  readonly turns: number;
  /** Clients that vanish: in the middle of a stream, from an event stream, from a WebSocket. */
  readonly connects: number;
  /** Share of the load that runs first, so that every cache is full. */
  readonly warm: number;
  readonly settleMs: number;
}

const longMs = 300_000;
const rounds = 5;

/**
 * How much resident memory grows by finished work. Garbage of the main thread is collected before each reading, that of the
 * storage threads varies by tens of MB: the lowest of the first two readings is compared with the lowest of the last two.
 */
export async function runSoak(options: SoakOptions, measures: Measures): Promise<SoakSample> {
  const { subject, turns, connects, warm, settleMs } = options;
  const running = await subject.start({ probe: true });
  const target = subject.target(running);
  const settled = async (): Promise<number> => {
    await sleep(settleMs);
    await running.ask('collect');
    return rssMb(running.pid);
  };
  try {
    await work(target, turns * warm, connects * warm);
    const looksMb: number[] = [];
    let unanswered = 0;
    for (let round = 0; round < rounds; round += 1) {
      unanswered += await work(target, turns / rounds, connects / rounds);
      looksMb.push(await settled());
    }
    const growth = Math.min(...looksMb.slice(-2)) - Math.min(...looksMb.slice(0, 2));
    // Measured over the rounds between them, reported for all.
    measures.add('soak rss growth', (growth * rounds) / (rounds - 2));
    return { turns, connects, unanswered, looksMb };
  } finally {
    await running.stop();
  }
}

/** Runs turns and vanishing clients at the same time; returns the number of unanswered ones. */
async function work(target: Target, turns: number, connects: number): Promise<number> {
  const url = `${target.url}/v1/chat/completions`;
  const load = async (stream: boolean, requests: number): Promise<void> => {
    const body = { ...question(target, 'mock-fast'), stream };
    const { good, errors } = await runHttpLoad({ url, headers: target.headers, body, connections: 8, stream, requests, ms: longMs });
    if (good < requests) throw new Error(`${target.name}: ${good} of ${requests} turns were answered: ${JSON.stringify(errors)}`);
  };
  const whole = Math.ceil((turns * 2) / 3);
  const clients = runChurn({ url: target.url, requests: visits(target), count: Math.ceil(connects), width: 32, stayMs: 25, ms: longMs });
  await load(false, whole);
  await load(true, Math.ceil(turns - whole));
  const { opened, unanswered } = await clients;
  if (opened < connects) throw new Error(`${target.name}: ${opened} of ${connects} clients came`);
  return unanswered;
}

function visits(target: Target): readonly string[] {
  const body = JSON.stringify({ ...question(target, 'mock-p10'), stream: true });
  const headers = {
    host: new URL(target.url).host,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...target.headers,
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const stream = `POST /v1/chat/completions HTTP/1.1\r\n${head.join('')}\r\n${body}`;
  return [stream, openingRequest('sse', target), stream, openingRequest('ws', target)];
}

function question(target: Target, model: string): object {
  return { model: target.model(model), messages: [{ role: 'user', content: 'Say something about gateways.' }] };
}
