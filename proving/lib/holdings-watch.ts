import { writeSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';
import type { Holdings } from './holdings.ts';

// Loaded into a daemon whose holdings are measured: at SIGUSR2 it reports how late its loop was since the last time, collects garbage
// and counts what remains.
if (isMainThread) {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const loop = monitorEventLoopDelay({ resolution: 10 });
  loop.enable();
  process.on('SIGUSR2', () => {
    const late = { p999: loop.percentile(99.9) / 1e6, max: loop.max / 1e6 };
    for (let pass = 0; pass < 3; pass += 1) collect();
    const holdings: Holdings = {
      loopMs: late,
      rssMb: process.memoryUsage.rss() / 2 ** 20,
      closures: queryObjects(Function, { format: 'count' }),
      handles: Object.fromEntries(
        Object.entries(Object.groupBy(process.getActiveResourcesInfo(), (kind) => kind))
          .filter(([kind]) => kind !== 'Timeout' && kind !== 'Immediate')
          .map(([kind, all = []]) => [kind, all.length]),
      ),
    };
    writeSync(2, `holdings: ${JSON.stringify(holdings)}\n`);
    loop.reset();
  });
}
