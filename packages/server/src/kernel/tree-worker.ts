import { parentPort, workerData } from 'node:worker_threads';
import { digestTree, type TreeRequest } from './digest-tree.ts';

// Passed by tree-thread.ts, within one process.
parentPort?.postMessage(digestTree(workerData as TreeRequest));
