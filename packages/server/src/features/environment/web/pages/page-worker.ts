import { parentPort, workerData } from 'node:worker_threads';
import type { HtmlPage } from './page-reader.ts';
import { readHtml } from './readable.ts';

/** Reads one page and exits: three parsers process untrusted markup here, and must neither hold the event loop nor keep memory. */
const page: HtmlPage = workerData;
parentPort?.postMessage(readHtml(page.html, page.url));
