import { Worker } from 'node:worker_threads';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { CountRequest, Usage } from './count-files.ts';

export interface Counter extends AsyncDisposable {
  count(request: CountRequest): Promise<Usage>;
}

const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 };
/** An idle thread costs memory. */
const idleMs = 30_000;

/** Counts workspaces one after the other in a thread that starts on demand. */
export function createCounter(clock: Clock): Counter {
  let worker: Worker | undefined;
  let previous: Promise<unknown> = Promise.resolve();
  let cancelIdle = () => {};
  const stop = async () => {
    cancelIdle();
    const ending = worker;
    worker = undefined;
    await ending?.terminate();
  };

  function started(): Worker {
    if (worker !== undefined) return worker;
    // No environment: it holds the keys of the installation.
    worker = new Worker(workerUrl(), { resourceLimits, env: {}, name: 'count' });
    worker.unref();
    return worker;
  }

  async function countNow(request: CountRequest): Promise<Usage> {
    cancelIdle();
    const thread = started();
    const { promise, resolve, reject } = Promise.withResolvers<Usage>();
    const onEnd = (error?: unknown) => reject(new AppError('internal', 'Internal error', { cause: error }));
    thread.once('message', resolve).once('error', onEnd).once('exit', onEnd);
    thread.postMessage(request);
    try {
      return await promise;
    } catch (error) {
      if (worker === thread) worker = undefined;
      throw error;
    } finally {
      thread.off('message', resolve).off('error', onEnd).off('exit', onEnd);
      cancelIdle = clock.after(idleMs, () => void stop());
    }
  }

  return {
    count(request) {
      const turn = previous.then(() => countNow(request));
      previous = turn.catch(() => {});
      return turn;
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** The bundle has the worker next to the server. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './count-worker.ts' : './count-worker.js', import.meta.url);
}
