import { parentPort, workerData } from 'node:worker_threads';
import { readHtml } from './readable.ts';

/** Reads one page and ends: foreign markup meets three parsers here, which must neither hold the event loop nor keep memory. */
parentPort?.postMessage(readHtml(String(workerData)));
