import { parentPort, workerData } from 'node:worker_threads';
import { readDocument, type ReadRequest } from './read-document.ts';
import type { ScansRequest } from './scans.ts';

/** Reads one document and exits: its parsers process untrusted files here, and must neither hold the event loop nor keep memory. */
const request: ReadRequest | ScansRequest = workerData;
parentPort?.postMessage('pages' in request ? await (await import('./scans.ts')).readScans(request) : await readDocument(request));
