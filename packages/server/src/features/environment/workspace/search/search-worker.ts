import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../../../../kernel/app-error.ts';
import { searchFiles } from './search-files.ts';
import type { SearchAnswer, SearchRequest } from './search.ts';

// Sent by search.ts, within one process.
const request = workerData as SearchRequest;

async function answer(): Promise<SearchAnswer> {
  try {
    return await searchFiles(request);
  } catch (error) {
    if (error instanceof AppError && (error.code === 'invalid_params' || error.code === 'not_found'))
      return { wrong: error.message, code: error.code };
    throw error;
  }
}

parentPort?.postMessage(await answer());
