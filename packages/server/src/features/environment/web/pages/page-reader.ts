import { Worker } from 'node:worker_threads';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { createLanes } from '../../../../kernel/lane.ts';
import type { ReadableText } from './readable.ts';

/** Converts HTML to text, off the main thread; fails with `payload_too_large` when a page needs too much memory, with `timeout` when it takes too long. */
export type ReadPage = (page: HtmlPage, signal: AbortSignal) => Promise<ReadableText>;

export interface HtmlPage {
  readonly html: string;
  /** Address of the page; links are resolved against it. */
  readonly url: string;
}

/** Threads at once; each may take `maxOldGenerationSizeMb`. */
const maxThreads = 2;
const readMs = 10_000;
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
const Answer = z.strictObject({ title: z.string(), text: z.string() });

export function createPageReader(clock: Clock, workerUrl: URL = defaultWorkerUrl()): ReadPage {
  const threads = createLanes();
  let pages = 0;
  return async (page, signal) => {
    pages += 1;
    using _thread = await threads.acquire({ key: String(pages), group: 'pages', groupLimit: maxThreads, principalId: 'pages', signal });
    // No environment: it holds the keys of the installation.
    const worker = new Worker(workerUrl, { workerData: page, resourceLimits, env: {}, name: 'page' });
    const outcome = Promise.withResolvers<ReadableText>();
    const onAbort = () => outcome.reject(new AppError('cancelled', 'The page was not read to its end'));
    signal.addEventListener('abort', onAbort, { once: true });
    // A parser that keeps rescanning nested markup would hold one of the few threads for ever.
    const cancel = clock.after(readMs, () => outcome.reject(new AppError('timeout', `The page was not read within ${readMs} ms`)));
    worker.once('message', (message: unknown) => outcome.resolve(Answer.parse(message)));
    worker.once('error', (error) =>
      outcome.reject(new AppError('payload_too_large', 'The page is too large or too broken to be read', { cause: error })),
    );
    worker.once('exit', () => outcome.reject(new AppError('payload_too_large', 'The page is too large or too broken to be read')));
    try {
      return await outcome.promise;
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
      await worker.terminate();
    }
  };
}

/** The bundle has the worker next to the server. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './page-worker.ts' : './page-worker.js', import.meta.url);
}
