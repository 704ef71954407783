import type { Clock } from '../../../kernel/clock.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { DocumentsApi, DocumentText } from './api.ts';
import { joinParts } from './shown.ts';
import type { DocumentSources } from './sources.ts';

export interface DocumentMethodsDeps {
  readonly api: DocumentsApi;
  readonly sources: DocumentSources;
  readonly clock: Clock;
}

export type DocumentMethods = HandlersOf<'media.extract_document' | 'media.test.document'>;

export function createDocumentMethods({ api, sources, clock }: DocumentMethodsDeps): DocumentMethods {
  const answer = (document: DocumentText, beganAt: number) => {
    const { mimeType, truncated, pageCount, notes } = document;
    const text = joinParts(document);
    const durationMs = Math.max(0, Math.round(clock.monotonic() - beganAt));
    return {
      text,
      mimeType,
      extractedChars: text.length,
      truncated,
      durationMs,
      ...(pageCount !== undefined && { pageCount }),
      ...(notes.length > 0 && { notes: [...notes] }),
    };
  };
  return {
    async 'media.extract_document'({ attachment_url }, call) {
      const beganAt = clock.monotonic();
      using _slot = await sources.slot(call);
      const { bytes, fileName } = await sources.attachment(attachment_url, 'attachment_url', api.maxFileBytes, call);
      const document = await api.extract({ bytes, fileName, param: 'attachment_url' }, call);
      return { ...answer(document, beganAt), ...(fileName !== undefined && { fileName }) };
    },
    async 'media.test.document'({ file, fileName }, call) {
      const beganAt = clock.monotonic();
      const bytes = sources.encoded(file, 'file', api.maxFileBytes);
      const document = await api.extract({ bytes, fileName, param: 'file' }, call);
      return { ...answer(document, beganAt), fileName: fileName ?? 'unknown' };
    },
  };
}
