import { answerTask } from '../../../../kernel/answer-task.ts';
import { readDocument, type ReadRequest } from './read-document.ts';
import type { ScansRequest } from './scans.ts';

/** Reads one document and exits: its parsers process untrusted files here, and must neither hold the event loop nor keep memory. */
await answerTask(async (bytes, order) => {
  const request = { ...(order as Omit<ReadRequest, 'bytes'> | Omit<ScansRequest, 'bytes'>), bytes };
  return 'pages' in request ? await (await import('./scans.ts')).readScans(request) : await readDocument(request);
});
