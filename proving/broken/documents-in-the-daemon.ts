import { buildIn } from './patch.ts';

/** Reads documents on the event loop. */
buildIn({
  name: 'documents-in-the-daemon',
  module: 'features/environment/documents/document-reader.ts',
  replace: [
    {
      from: "return await runInProcess({ program, order, input, memoryMb, timeoutMs, clock, signal, subject: 'The document' });",
      to: "return await (await import('./formats/read-document.ts')).readDocument({ ...order, bytes: input } as never);",
    },
  ],
});
