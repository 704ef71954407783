import { setTimeout as sleep } from 'node:timers/promises';
import { runHttpLoad } from '../lib/client.ts';
import { startHolder } from '../lib/holder.ts';
import type { Measures } from '../lib/measures.ts';
import { cpuUs } from '../lib/proc.ts';
import type { Target } from '../lib/targets.ts';
import { openingRequest } from './held.ts';

/** A server of event streams, and how an event is caused there. */
export interface EventSource {
  readonly target: Target;
  /** Query of the stream that selects the one kind. */
  readonly query: string;
  /** Beginning of the frame of each such event. */
  readonly mark: string;
  readonly cause: { readonly path: string; readonly body: object };
}

/** One event per completion; `mock-fast` answers with some 600 characters, which the event carries. */
export function productEvents(target: Target): EventSource {
  const body = { model: target.model('mock-fast'), messages: [{ role: 'user', content: 'Say something about gateways.' }] };
  return { target, query: '?kinds=message:sent', mark: 'event: message:sent', cause: { path: '/v1/chat/completions', body } };
}

/** The bare write of events of about the same size. */
export function bareEvents(target: Target): EventSource {
  return { target, query: '', mark: 'event: sent', cause: { path: '/emit', body: { content: 'x'.repeat(1_000) } } };
}

export interface FanoutSample {
  /** CPU per event and reader, without the cost of causing the event. */
  readonly cpuPerReader: number;
  readonly bytesPerEvent: number;
}

/** One event to many readers, product and bare writes in turn. */
export async function runFanout(
  options: { readonly bare: EventSource; readonly product: EventSource; readonly readers: number; readonly events: number; readonly rounds: number },
  measures: Measures,
): Promise<Map<string, FanoutSample[]>> {
  const samples = new Map<string, FanoutSample[]>();
  for (let round = -1; round < options.rounds; round += 1) {
    const order = [options.bare, options.product];
    for (const source of round % 2 === 0 ? order : order.toReversed()) {
      const sample = await fanOut(source, options);
      const { name } = source.target;
      if (round >= 0) samples.set(name, [...(samples.get(name) ?? []), sample]);
    }
  }
  const bare = samples.get(options.bare.target.name) ?? [];
  const product = samples.get(options.product.target.name) ?? [];
  measures.add('fanout cpu/bare', ...product.map((sample, round) => sample.cpuPerReader / (bare[round]?.cpuPerReader ?? NaN)));
  return samples;
}

async function fanOut(source: EventSource, { readers, events }: { readonly readers: number; readonly events: number }): Promise<FanoutSample> {
  const { target, mark } = source;
  const alone = await cpuOf(source, events);
  const holder = startHolder();
  try {
    const { open, bytes: opening } = await holder.hold({
      url: target.url,
      request: openingRequest('sse', target, source.query),
      count: readers,
      mark,
    });
    if (open !== readers) throw new Error(`${target.name}: ${open} of ${readers} readers came in`);
    let last = { marks: 0, bytes: 0 };
    const cpu = await cpuOf(source, events, async () => {
      for (let tries = 0; tries < 500 && last.marks < readers * events; tries += 1) {
        await sleep(20);
        last = await holder.state();
      }
    });
    if (last.marks !== readers * events) throw new Error(`${target.name}: ${last.marks} of ${readers * events} events reached the readers`);
    return { cpuPerReader: (cpu - alone) / (readers * events), bytesPerEvent: Math.round((last.bytes - opening) / last.marks) };
  } finally {
    await holder.stop();
  }
}

/** Returns the server's CPU while it sends `events` events, until they have `arrived`. */
async function cpuOf({ target, cause }: EventSource, events: number, arrived?: () => Promise<void>): Promise<number> {
  if (target.pid === undefined) throw new Error(`${target.name} has no process`);
  const before = cpuUs(target.pid);
  const load = { url: `${target.url}${cause.path}`, headers: target.headers, body: cause.body, connections: 1, stream: false };
  const { good, errors } = await runHttpLoad({ ...load, requests: events, ms: 20_000 });
  if (good !== events) throw new Error(`${target.name}: ${good} of ${events} events were caused: ${JSON.stringify(errors)}`);
  await arrived?.();
  return cpuUs(target.pid) - before;
}
