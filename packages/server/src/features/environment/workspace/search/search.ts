import { Worker } from 'node:worker_threads';
import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { createLanes } from '../../../../kernel/lane.ts';
import { plainPath } from '../../../../kernel/safe-path.ts';

export interface SearchRequest {
  readonly root: string;
  /** Folder, or file, to look in; `.` is the whole workspace. */
  readonly path: string;
  /** Glob for names or paths to search. */
  readonly glob: string | undefined;
  /** Expression that lines must match; without it only names are searched. */
  readonly expression: { readonly source: string; readonly ignoreCase: boolean; readonly literal: boolean; readonly context: number } | undefined;
  readonly limit: number;
}

const SearchAnswer = once(() =>
  z.union([
    z.strictObject({
      /** Paths, or lines with their path and number. */
      lines: z.array(z.string()),
      found: z.int().min(0),
      files: z.int().min(0),
      /** Why there may be more. */
      stopped: z.enum(['limit', 'files', 'size']).optional(),
    }),
    z.strictObject({ wrong: z.string(), code: z.enum(['invalid_params', 'not_found']) }),
  ]),
);
export type SearchAnswer = z.output<ReturnType<typeof SearchAnswer>>;
export type Found = Extract<SearchAnswer, { lines: string[] }>;

/** Searches a workspace in a separate thread: an expression may take forever on one line, and no file may block the event loop. */
export type Search = (request: SearchRequest, signal: AbortSignal) => Promise<Found>;

/** Threads at once; each may take `maxOldGenerationSizeMb`. */
const maxThreads = 2;
const searchTimeoutMs = 10_000;
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

/** `after` calls back once after so many milliseconds and returns a function that cancels it. */
export function createSearch({ after }: { readonly after: (ms: number, run: () => void) => () => void }): Search {
  const threads = createLanes();
  let searches = 0;
  return async (request, signal) => {
    // A thread is not worth a path that cannot exist.
    if (request.path !== '.') plainPath(request.path);
    searches += 1;
    using _thread = await threads.acquire({ key: String(searches), group: 'searches', groupLimit: maxThreads, principalId: 'searches', signal });
    // No environment: it holds the keys of the installation.
    const worker = new Worker(workerUrl(), { workerData: request, resourceLimits, env: {}, name: 'search' });
    const outcome = Promise.withResolvers<SearchAnswer>();
    const onAbort = () => outcome.reject(new AppError('cancelled', 'The search was stopped'));
    signal.addEventListener('abort', onAbort, { once: true });
    const cancelTimeout = after(searchTimeoutMs, () =>
      outcome.reject(new AppError('timeout', `The search took longer than ${searchTimeoutMs} ms: use a simpler expression, or search fewer files`)),
    );
    worker.once('message', (message: unknown) => outcome.resolve(SearchAnswer().parse(message)));
    worker.once('error', (error) => outcome.reject(new AppError('internal', 'Internal error', { cause: error })));
    worker.once('exit', () => outcome.reject(new AppError('payload_too_large', 'The search needs too much memory: search fewer files')));
    try {
      const answer = await outcome.promise;
      if ('wrong' in answer) throw new AppError(answer.code, answer.wrong);
      return answer;
    } finally {
      cancelTimeout();
      signal.removeEventListener('abort', onAbort);
      await worker.terminate();
    }
  };
}

/** The bundle has the worker next to the server. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './search-worker.ts' : './search-worker.js', import.meta.url);
}
