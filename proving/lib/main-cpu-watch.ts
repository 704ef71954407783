import { writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

// Loaded into a daemon: at SIGUSR2 it reports the longest processor time that the main thread used between two timers. Unlike a delay
// of the loop it does not depend on what else the machine does.
if (isMainThread) {
  let longestMs = 0;
  let last = process.threadCpuUsage();
  const tick = (): void => {
    const used = process.threadCpuUsage();
    longestMs = Math.max(longestMs, (used.user + used.system - last.user - last.system) / 1_000);
    last = used;
    setTimeout(tick, 2).unref();
  };
  tick();
  process.on('SIGUSR2', () => {
    writeSync(2, `main thread: ${JSON.stringify({ longestMs, peakMb: process.resourceUsage().maxRSS / 1024 })}\n`);
    longestMs = 0;
  });
}
