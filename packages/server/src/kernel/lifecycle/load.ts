import { getHeapStatistics } from 'node:v8';
import type { Clock } from '../clock.ts';

/** How busy the process is, as measured on its own event loop. */
export interface Load extends Disposable {
  /** Longest delay of a timer in the last full second, in milliseconds. */
  loopDelayMs(): number;
  /** Why new work should be refused now; undefined while all is well. */
  overload(): string | undefined;
}

const sampleMs = 250;
const samplesPerWindow = 4;
/** Above this in two consecutive windows, answers come too late to be useful (reliability: load shedding). */
const lateMs = 200;
/** Share of the time that the thread itself must have worked: a machine that is busy with other programs makes timers late as well. */
const ownShare = 0.5;
const fullHeap = 0.85;

/** Samples with one coarse timer, four wake-ups a second: the exact sampler of node would take fifty. */
export function watchLoad(deps: {
  readonly clock: Clock;
  /** Called when the state changes; undefined when all is well again. */
  readonly onChange: (reason: string | undefined) => void;
  /** Share of the heap that is in use, 0 to 1. */
  readonly heapShare?: () => number;
  /** Processor time that this thread has used, in milliseconds. */
  readonly cpuMs?: () => number;
}): Load {
  const { clock, onChange, heapShare = usedHeapShare, cpuMs = threadCpuMs } = deps;
  let expected = clock.monotonic() + sampleMs;
  let samples = 0;
  let longest = 0;
  let lastWindow = 0;
  let lateWindows = 0;
  let windowFromMs = clock.monotonic();
  let windowCpuMs = cpuMs();
  let reason: string | undefined;
  let cancel = clock.after(sampleMs, sample);

  function sample(): void {
    const now = clock.monotonic();
    longest = Math.max(longest, now - expected);
    samples += 1;
    if (samples === samplesPerWindow) closeWindow();
    expected = now + sampleMs;
    cancel = clock.after(sampleMs, sample);
  }

  function closeWindow(): void {
    lastWindow = longest;
    lateWindows = worked() > ownShare && longest > lateMs ? lateWindows + 1 : 0;
    samples = 0;
    longest = 0;
    const found =
      heapShare() > fullHeap
        ? 'The server is nearly out of memory'
        : lateWindows >= 2
          ? 'The server has more work than it can do in time'
          : undefined;
    if (found === reason) return;
    reason = found;
    onChange(reason);
  }

  /** Returns the share of the window in which the thread worked, and begins the next one. */
  function worked(): number {
    const [fromMs, fromCpuMs] = [windowFromMs, windowCpuMs];
    windowFromMs = clock.monotonic();
    windowCpuMs = cpuMs();
    return (windowCpuMs - fromCpuMs) / (windowFromMs - fromMs);
  }

  return { loopDelayMs: () => lastWindow, overload: () => reason, [Symbol.dispose]: () => cancel() };
}

function usedHeapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
