import { join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { runCompiled } from './compiled-file.ts';

/** Time in which the thread opens its database and serves the start. */
const keepAfterMs = 1_500;

// What the build runs as a storage thread. The functions of the writer are kept: the others use some of them.
const { keep } = runCompiled(join(import.meta.dirname, './storage-program.js'));
if (workerData.role === 'writer') setTimeout(keep, keepAfterMs).unref();
