import { Worker } from 'node:worker_threads';
import { AppError } from './app-error.ts';
import type { TreeAnswer, TreeRequest } from './digest-tree.ts';

const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 };

/** Runs `digestTree` in a separate thread. Fails with `precondition_failed`, saying why, when the folder cannot be compared. */
export async function findTreeDigest(request: TreeRequest): Promise<string> {
  // No environment: it contains the keys of the installation.
  const worker = new Worker(workerUrl(), { workerData: request, resourceLimits, env: {}, name: 'tree' });
  const { promise, resolve, reject } = Promise.withResolvers<TreeAnswer>();
  const onEnd = (error?: unknown) => reject(new AppError('internal', 'Internal error', { cause: error }));
  worker.once('message', resolve).once('error', onEnd).once('exit', onEnd);
  try {
    const answer = await promise;
    if ('refused' in answer)
      throw new AppError('precondition_failed', `No approval can be held for a program here: of the workspace, ${answer.refused}`);
    return answer.digest;
  } finally {
    await worker.terminate();
  }
}

/** Returns the worker's address; in the bundle it is next to the server. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './tree-worker.ts' : './tree-worker.js', import.meta.url);
}
