import { parentPort, workerData } from 'node:worker_threads';
import { readDocument, type ReadRequest } from './read-document.ts';

/** Reads one document and exits: its parsers process untrusted files here, and must neither hold the event loop nor keep memory. */
const request: ReadRequest = workerData;
parentPort?.postMessage(await readDocument(request));
