import { runHttpLoad } from '../lib/client.ts';
import type { Measures } from '../lib/measures.ts';
import { cpuUs } from '../lib/proc.ts';
import { percentile } from '../lib/stats.ts';
import type { Subject } from '../lib/targets.ts';

const share = 0.5;
const trialStreams = 32;

export interface LoopSample {
  readonly streams: number;
  /** Share of one core that all threads of the server use while all streams run. */
  readonly cpuShare: number;
  readonly p99: number;
  readonly max: number;
}

/** How late timers of the server fire while paced streams use half of one core: a trial of 32 determines how many that are. */
export async function runLoop(
  options: { readonly subject: Subject; readonly rounds: number; readonly ms: number; readonly maxStreams: number },
  measures: Measures,
): Promise<LoopSample[]> {
  const { subject, rounds, ms, maxStreams } = options;
  const running = await subject.start({ probe: true });
  const target = subject.target(running);
  const stream = async (streams: number, forMs: number): Promise<number> => {
    const before = cpuUs(running.pid);
    const { good, errors, deltas } = await runHttpLoad({
      url: `${target.url}/v1/chat/completions`,
      headers: target.headers,
      body: { model: target.model('mock-p10'), messages: [{ role: 'user', content: 'Say something about gateways.' }], stream: true },
      connections: streams,
      ms: forMs,
      stream: true,
      staggerMs: Math.min(1_000, forMs / 2),
    });
    if (good === 0 || Object.keys(errors).length > 0) throw new Error(`${subject.name}: ${good} streams, errors ${JSON.stringify(errors)}`);
    // 100 deltas a second each; at the beginning and end the load is lower.
    return (((cpuUs(running.pid) - before) / deltas) * streams * 100) / 1e6;
  };
  try {
    await stream(trialStreams, ms / 2);
    const trial = await stream(trialStreams, ms);
    const streams = Math.min(maxStreams, Math.max(1, Math.round((trialStreams * share) / trial)));
    const samples: LoopSample[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await running.ask('watch');
      const cpuShare = await stream(streams, ms);
      const delays = (await running.ask('delays')).delays.toSorted((a, b) => a - b);
      samples.push({ streams, cpuShare, p99: percentile(delays, 0.99), max: delays.at(-1) ?? NaN });
    }
    measures.add('loop delay p99', ...samples.map(({ p99 }) => p99));
    return samples;
  } finally {
    await running.stop();
  }
}
