import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock } from '../../../kernel/clock.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';

export interface MetricsDeps {
  readonly clock: Clock;
  readonly bus: EventBus;
  readonly activeTurns: () => number;
}

const intervalMs = 30_000;
/** The first event after a listener subscribed covers this much. */
const firstSampleMs = 1_000;
/** Step of the event-loop sampler: smaller delays are indistinguishable from an idle loop. */
const resolutionMs = 20;

/** Emits `observability:metrics` every 30 seconds. The sampler, which wakes the process 50 times a second, runs only while there are listeners. */
export function startMetrics(deps: MetricsDeps): Disposable {
  const { clock, bus } = deps;
  const startedAt = clock.monotonic();
  let sampler: ReturnType<typeof monitorEventLoopDelay> | undefined;
  let cancel = clock.after(intervalMs, tick);

  function tick(): void {
    if (!bus.wants('observability:metrics')) {
      sampler?.disable();
      sampler = undefined;
      cancel = clock.after(intervalMs, tick);
      return;
    }
    if (sampler === undefined) {
      sampler = monitorEventLoopDelay({ resolution: resolutionMs });
      sampler.enable();
      cancel = clock.after(firstSampleMs, tick);
      return;
    }
    const memory = process.memoryUsage();
    bus.emit('observability:metrics', {
      rssBytes: memory.rss,
      heapUsedBytes: memory.heapUsed,
      heapTotalBytes: memory.heapTotal,
      externalBytes: memory.external,
      eventLoopDelayMs: {
        min: delay(sampler.min),
        max: delay(sampler.max),
        mean: delay(sampler.mean),
        p50: delay(sampler.percentile(50)),
        p99: delay(sampler.percentile(99)),
      },
      activeTurns: deps.activeTurns(),
      uptimeSeconds: (clock.monotonic() - startedAt) / 1000,
      timestamp: clock.now(),
    });
    sampler.reset();
    cancel = clock.after(intervalMs, tick);
  }

  return {
    [Symbol.dispose]() {
      cancel();
      sampler?.disable();
    },
  };
}

/** Converts nanoseconds between two samples to milliseconds beyond the planned step; 0 without samples. */
function delay(nanoseconds: number): number {
  const ms = nanoseconds / 1e6 - resolutionMs;
  // An empty histogram has NaN for its mean and the largest integer for its minimum.
  return Number.isFinite(ms) && ms > 0 && ms < 1e9 ? Math.round(ms * 100) / 100 : 0;
}
