import type { DocumentText } from '../api.ts';
import { detect } from './detect.ts';
import { Full, type ReadLimits, Refused, type RefusalKind, Sink } from './sink.ts';

export interface ReadRequest {
  readonly bytes: Uint8Array;
  readonly extension: string | undefined;
  readonly limits: ReadLimits;
}

export type ReadAnswer = { readonly document: DocumentText } | { readonly refusal: { readonly kind: RefusalKind; readonly message: string } };

/** Reads a document in the calling thread. Whatever a parser throws is an answer: the input is untrusted. */
export async function readDocument({ bytes, extension, limits }: ReadRequest): Promise<ReadAnswer> {
  const sink = new Sink(limits);
  let truncated = false;
  try {
    const { mimeType, read } = await detect(bytes, extension);
    try {
      await read(sink);
    } catch (error) {
      if (!(error instanceof Full)) throw error;
      truncated = true;
    }
    const { scannedPages } = sink;
    return {
      document: {
        mimeType,
        parts: sink.finish(),
        truncated,
        pageCount: sink.pageCount,
        ...(scannedPages.length > 0 && { scannedPages }),
        notes: sink.notes,
      },
    };
  } catch (error) {
    if (error instanceof Refused) return { refusal: { kind: error.kind, message: error.message } };
    return { refusal: { kind: 'broken', message: error instanceof RangeError ? 'nests too deeply to be read' : 'is broken' } };
  }
}
