import { parentPort, workerData } from 'node:worker_threads';
import type { HtmlPage } from './page-reader.ts';
import { readHtml } from './readable.ts';

/** Reads one page and ends: foreign markup meets three parsers here, which must neither hold the event loop nor keep memory. */
const page: HtmlPage = workerData;
parentPort?.postMessage(readHtml(page.html, page.url));
