import * as z from 'zod';
import type { Clock } from '../../../../kernel/clock.ts';
import { createLanes } from '../../../../kernel/lane.ts';
import { runInThread } from '../../../../kernel/run-in-thread.ts';
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
const timeoutMs = 10_000;
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
const Answer = z.strictObject({ title: z.string(), text: z.string() });

export function createPageReader(clock: Clock, workerUrl: URL = defaultWorkerUrl()): ReadPage {
  const threads = createLanes();
  let pages = 0;
  return async (page, signal) => {
    pages += 1;
    using _thread = await threads.acquire({ key: String(pages), group: 'pages', groupLimit: maxThreads, principalId: 'pages', signal });
    return Answer.parse(await runInThread({ workerUrl, name: 'page', data: page, resourceLimits, timeoutMs, clock, signal, subject: 'The page' }));
  };
}

/** The bundle has the worker next to the server. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './page-worker.ts' : './page-worker.js', import.meta.url);
}
