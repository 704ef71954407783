import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { createLanes } from '../../../kernel/lane.ts';
import { runInThread } from '../../../kernel/run-in-thread.ts';
import type { DocumentText } from './api.ts';
import type { Scan, ScansRequest } from './formats/scans.ts';
import type { ReadRequest } from './formats/read-document.ts';
import type { RefusalKind } from './formats/sink.ts';

/** Reads a document off the main thread. */
export type ReadInThread = (
  request: ReadRequest & { readonly timeoutMs: number; readonly param: string | undefined },
  call: Pick<CallContext, 'identity' | 'signal'>,
) => Promise<DocumentText>;

/** Returns the pictures of scanned pages of a PDF, read off the main thread. */
export type ScanInThread = (
  request: ScansRequest & { readonly timeoutMs: number },
  call: Pick<CallContext, 'identity' | 'signal'>,
) => Promise<readonly Scan[]>;

export interface DocumentReader {
  readonly read: ReadInThread;
  readonly scan: ScanInThread;
}

/** Threads at once; each may take `maxOldGenerationSizeMb`. */
const maxThreads = 2;
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 };
const Answer = once(() =>
  z.union([
    z.strictObject({
      document: z.strictObject({
        mimeType: z.string(),
        parts: z.array(z.strictObject({ label: z.string(), text: z.string() })),
        truncated: z.boolean(),
        pageCount: z.int().optional(),
        scannedPages: z.array(z.int()).optional(),
        notes: z.array(z.string()),
      }),
    }),
    z.strictObject({ refusal: z.strictObject({ kind: z.enum(['encrypted', 'broken', 'unsupported', 'too_large']), message: z.string() }) }),
  ]),
);
const Scans = once(() => z.array(z.strictObject({ page: z.int(), png: z.instanceof(Uint8Array) })));
const codes: Readonly<Record<RefusalKind, 'invalid_params' | 'unsupported_media_type' | 'payload_too_large'>> = {
  encrypted: 'invalid_params',
  broken: 'invalid_params',
  unsupported: 'unsupported_media_type',
  too_large: 'payload_too_large',
};

export function createDocumentReader(clock: Clock, workerUrl: URL = defaultWorkerUrl()): DocumentReader {
  const threads = createLanes();
  let documents = 0;

  async function inThread(data: object, timeoutMs: number, { identity, signal }: Pick<CallContext, 'identity' | 'signal'>): Promise<unknown> {
    documents += 1;
    const lane = { key: String(documents), group: 'documents', groupLimit: maxThreads, principalId: identity.principalId, signal };
    using _thread = await threads.acquire(lane);
    return await runInThread({ workerUrl, name: 'document', data, resourceLimits, timeoutMs, clock, signal, subject: 'The document' });
  }

  return {
    async read({ bytes, extension, limits, timeoutMs, param }, call) {
      const data: ReadRequest = { bytes, extension, limits };
      const answer = Answer().parse(await inThread(data, timeoutMs, call));
      if ('document' in answer) return answer.document;
      const { kind, message } = answer.refusal;
      throw new AppError(codes[kind], `${param === undefined ? '' : `${param}: `}The document ${message}`, param === undefined ? {} : { param });
    },
    async scan({ bytes, pages, maxSide, timeoutMs }, call) {
      const data: ScansRequest = { bytes, pages, maxSide };
      return Scans().parse(await inThread(data, timeoutMs, call));
    },
  };
}

/** The bundle has the worker next to the server. */
function defaultWorkerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './formats/document-worker.ts' : './document-worker.js', import.meta.url);
}
