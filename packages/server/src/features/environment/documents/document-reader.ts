import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { createLanes } from '../../../kernel/lane.ts';
import { runInThread } from '../../../kernel/run-in-thread.ts';
import type { DocumentText } from './api.ts';
import type { ReadRequest } from './formats/read-document.ts';
import type { RefusalKind } from './formats/sink.ts';

/** Reads a document off the main thread. */
export type ReadInThread = (
  request: ReadRequest & { readonly timeoutMs: number; readonly param: string | undefined },
  call: Pick<CallContext, 'identity' | 'signal'>,
) => Promise<DocumentText>;

/** Threads at once; each may take `maxOldGenerationSizeMb`. */
const maxThreads = 2;
const resourceLimits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
const Answer = once(() =>
  z.union([
    z.strictObject({
      document: z.strictObject({
        mimeType: z.string(),
        parts: z.array(z.strictObject({ label: z.string(), text: z.string() })),
        truncated: z.boolean(),
        pageCount: z.int().optional(),
        notes: z.array(z.string()),
      }),
    }),
    z.strictObject({ refusal: z.strictObject({ kind: z.enum(['encrypted', 'broken', 'unsupported', 'too_large']), message: z.string() }) }),
  ]),
);
const codes: Readonly<Record<RefusalKind, 'invalid_params' | 'unsupported_media_type' | 'payload_too_large'>> = {
  encrypted: 'invalid_params',
  broken: 'invalid_params',
  unsupported: 'unsupported_media_type',
  too_large: 'payload_too_large',
};

export function createDocumentReader(clock: Clock, workerUrl: URL = defaultWorkerUrl()): ReadInThread {
  const threads = createLanes();
  let documents = 0;
  return async ({ bytes, extension, limits, timeoutMs, param }, { identity, signal }) => {
    documents += 1;
    const lane = { key: String(documents), group: 'documents', groupLimit: maxThreads, principalId: identity.principalId, signal };
    using _thread = await threads.acquire(lane);
    const data: ReadRequest = { bytes, extension, limits };
    const answer = Answer().parse(
      await runInThread({ workerUrl, name: 'document', data, resourceLimits, timeoutMs, clock, signal, subject: 'The document' }),
    );
    if ('document' in answer) return answer.document;
    const { kind, message } = answer.refusal;
    throw new AppError(codes[kind], `${param === undefined ? '' : `${param}: `}The document ${message}`, param === undefined ? {} : { param });
  };
}

/** The bundle has the worker next to the server. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './formats/document-worker.ts' : './document-worker.js', import.meta.url);
}
