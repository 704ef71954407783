import { Worker } from 'node:worker_threads';
import { CheckAnswer, type CheckRequest } from './check-request.ts';

/** Calls back once after so many milliseconds of real time, unless the returned function is called before. */
export type After = (ms: number, run: () => void) => () => void;

const startTimeoutMs = 60_000;
const timeoutMs = 1_000;
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 };

/** Makes the checks in a separate thread, because an expression can take forever on an answer; returns why it could not. */
export async function checkOffThread(request: CheckRequest, after: After): Promise<CheckAnswer | { readonly failed: string }> {
  // No environment: it holds the keys of the installation.
  const worker = new Worker(workerUrl(), { workerData: request, resourceLimits, env: {}, name: 'check' });
  const outcome = Promise.withResolvers<CheckAnswer | { readonly failed: string }>();
  const limit = (ms: number) => after(ms, () => outcome.resolve({ failed: `took longer than ${ms} ms` }));
  let cancelTimeout = limit(startTimeoutMs);
  worker.on('message', (message: unknown) => {
    if (message !== 'started') return outcome.resolve(CheckAnswer().parse(message));
    cancelTimeout();
    cancelTimeout = limit(timeoutMs);
  });
  worker.once('error', (error) => outcome.resolve({ failed: error instanceof Error ? error.message : String(error) }));
  worker.once('exit', () => outcome.resolve({ failed: 'needs too much memory' }));
  try {
    return await outcome.promise;
  } finally {
    cancelTimeout();
    await worker.terminate();
  }
}

/** The bundle has the worker next to the server. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './check-worker.ts' : './check-worker.js', import.meta.url);
}
