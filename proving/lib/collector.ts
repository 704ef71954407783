import { writeSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

// Loaded into a daemon whose memory is measured: at SIGUSR2 it collects garbage and prints what is then held on the heap and in buffers.
if (isMainThread)
  process.on('SIGUSR2', () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    for (let pass = 0; pass < 2; pass += 1) collect();
    const { heapUsed, external } = process.memoryUsage();
    writeSync(2, `held after collection: ${heapUsed + external}\n`);
  });
