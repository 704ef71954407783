import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { createLanes } from '../../../kernel/lane.ts';
import { runInProcess } from '../../../kernel/run-in-process.ts';
import type { DocumentText } from './api.ts';
import type { Scan, ScansRequest } from './formats/scans.ts';
import type { ReadRequest } from './formats/read-document.ts';
import type { RefusalKind } from './formats/sink.ts';

/** Reads a document in a separate process. */
export type ReadApart = (
  request: ReadRequest & { readonly timeoutMs: number; readonly param: string | undefined },
  call: Pick<CallContext, 'identity' | 'signal'>,
) => Promise<DocumentText>;

/** Returns the pictures of scanned pages of a PDF, read in a separate process. */
export type ScanApart = (
  request: ScansRequest & { readonly timeoutMs: number },
  call: Pick<CallContext, 'identity' | 'signal'>,
) => Promise<readonly Scan[]>;

export interface DocumentReader {
  readonly read: ReadApart;
  readonly scan: ScanApart;
}

/** Processes at once; each may take `memoryMb` for objects. */
const maxProcesses = 2;
const memoryMb = 64;
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

export function createDocumentReader(clock: Clock, program: URL = defaultProgram()): DocumentReader {
  const processes = createLanes();
  let documents = 0;

  async function inProcess(
    input: Uint8Array,
    order: object,
    timeoutMs: number,
    { identity, signal }: Pick<CallContext, 'identity' | 'signal'>,
  ): Promise<unknown> {
    documents += 1;
    const lane = { key: String(documents), group: 'documents', groupLimit: maxProcesses, principalId: identity.principalId, signal };
    using _process = await processes.acquire(lane);
    return await runInProcess({ program, order, input, memoryMb, timeoutMs, clock, signal, subject: 'The document' });
  }

  return {
    async read({ bytes, extension, limits, timeoutMs, param }, call) {
      const order: Omit<ReadRequest, 'bytes'> = { extension, limits };
      const answer = Answer().parse(await inProcess(bytes, order, timeoutMs, call));
      if ('document' in answer) return answer.document;
      const { kind, message } = answer.refusal;
      throw new AppError(codes[kind], `${param === undefined ? '' : `${param}: `}The document ${message}`, param === undefined ? {} : { param });
    },
    async scan({ bytes, pages, maxSide, timeoutMs }, call) {
      const order: Omit<ScansRequest, 'bytes'> = { pages, maxSide };
      return Scans().parse(await inProcess(bytes, order, timeoutMs, call));
    },
  };
}

/** The bundle has the program next to the server. */
function defaultProgram(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './formats/document-process.ts' : './document-process.js', import.meta.url);
}
