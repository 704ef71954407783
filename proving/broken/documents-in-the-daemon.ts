import { buildIn } from './patch.ts';

/** Reads documents on the event loop. */
buildIn({
  name: 'documents-in-the-daemon',
  module: 'features/environment/documents/document-reader.ts',
  replace: [
    {
      from: "return await runInThread({ workerUrl, name: 'document', data, resourceLimits, timeoutMs, clock, signal, subject: 'The document' });",
      to: "return await (await import('./formats/read-document.ts')).readDocument(data as never);",
    },
  ],
});
