import { parentPort } from 'node:worker_threads';
import { type CountRequest, countFiles } from './count-files.ts';

// Both ends are in one process: counter.ts sends requests one by one.
parentPort?.on('message', (request: CountRequest) => parentPort?.postMessage(countFiles(request)));
