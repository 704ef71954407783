import type { ReadingCall } from './vision.ts';

export type { PictureReader, ReadingCall } from './vision.ts';

/** Part of a document that can be cited: a page, a sheet, a slide, a chapter, or the text below a heading. */
export interface DocumentPart {
  /** "Page 3", "Sheet Costs", a heading; empty for the beginning of a text without headings. */
  readonly label: string;
  readonly text: string;
}

export interface DocumentText {
  /** Type that the bytes show. */
  readonly mimeType: string;
  readonly parts: readonly DocumentPart[];
  /** Cut at the character or page limit. */
  readonly truncated: boolean;
  /** Pages of a PDF, including those that were not read. */
  readonly pageCount?: number | undefined;
  /** Pages of a PDF without text, which are probably scanned. */
  readonly scannedPages?: readonly number[] | undefined;
  /** What a reader must know: pages without text, a hidden sheet. */
  readonly notes: readonly string[];
  /** Why pages are missing that a later attempt may read: the budget is spent, the provider is away. */
  readonly unread?: string | undefined;
}

export interface DocumentFile {
  readonly bytes: Uint8Array;
  /** Only chooses among kinds of text, which have no signature. */
  readonly fileName?: string | undefined;
  /** Named in errors. */
  readonly param?: string | undefined;
}

export interface DocumentsApi {
  /**
   * Returns the text of a file, off the main thread. Fails with `unsupported_media_type` for types that are not documents, `invalid_params` for
   * encrypted and broken files, `payload_too_large` and `timeout` beyond the limits. Scanned pages and images are read by a model that sees,
   * if there is one, within the budgets of the agent.
   */
  extract(file: DocumentFile, call: ReadingCall): Promise<DocumentText>;
  /** Joins parts to a text with their labels as headings. */
  join(document: DocumentText): string;
  /** Returns a document for a model: facts and its text, of a long one the outline and the beginning. `more`: how the model reads the rest. */
  show(document: DocumentText, options: { readonly more: string }): string;
  /** Whether files of a type have a text that can be extracted. */
  reads(contentType: string): boolean;
  readonly maxFileBytes: number;
}

/** Types whose text can be extracted. */
export const documentTypes = [
  'text/plain',
  'text/markdown',
  'text/csv',
  'text/tab-separated-values',
  'text/html',
  'application/json',
  'application/xml',
  'application/rtf',
  'application/pdf',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  'application/vnd.oasis.opendocument.text',
  'application/vnd.oasis.opendocument.spreadsheet',
  'application/vnd.oasis.opendocument.presentation',
  'application/epub+zip',
  'message/rfc822',
  'application/zip',
  'application/x-tar',
  'application/gzip',
] as const;
