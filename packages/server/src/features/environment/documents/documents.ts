import { isUtf8 } from 'node:buffer';
import { errorCatalogue } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { Egress } from '../../../kernel/egress.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { MediaApi } from '../media/api.ts';
import type { FileTaints } from '../workspace/api.ts';
import { type DocumentFile, type DocumentsApi, type DocumentText, documentTypes } from './api.ts';
import type { DocumentsConfig } from './config.ts';
import { createDocumentReader, type DocumentReader } from './document-reader.ts';
import { readPlain } from './formats/plain.ts';
import type { ReadRequest } from './formats/read-document.ts';
import { Full, Sink } from './formats/sink.ts';
import { kindOfText } from './formats/text-kind.ts';
import { createDocumentMethods, type DocumentMethods } from './methods.ts';
import { joinParts, printFacts, showDocument } from './shown.ts';
import { createDocumentSources } from './sources.ts';
import { TextCache } from './text-cache.ts';
import { createReadDocumentTool } from './tool.ts';
import { imageType, isPicture, type PictureReader, type ReadingCall, withScans } from './vision.ts';

/** Pixels of the longest side of a scanned page: small print stays readable. */
const scanSide = 1_800;
const maxSmallBytes = 65_536;

export interface DocumentsDeps {
  readonly clock: Clock;
  readonly config: Live<DocumentsConfig>;
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly egress: Pick<Egress, 'request'>;
  readonly taints: Pick<FileTaints, 'isTainted'>;
  /** Whether a path names a file of the daemon in a workspace. */
  readonly isInternal: (path: string) => boolean;
  readonly pictures: PictureReader;
}

export interface Documents {
  readonly api: DocumentsApi;
  readonly methods: DocumentMethods;
  readonly tool: Tool;
}

/** Text of documents: for methods, for agents, and for attachments that a model cannot read. */
export function createDocuments({ clock, config, media, egress, taints, isInternal, pictures }: DocumentsDeps): Documents {
  const cache = new TextCache();
  let reader: DocumentReader | undefined;

  async function extract({ bytes, fileName, param }: DocumentFile, call: ReadingCall): Promise<DocumentText> {
    const { maxFileBytes, maxCharacters, maxPages, maxScannedPages, timeoutMs } = config.current;
    if (bytes.byteLength > maxFileBytes)
      throw new AppError('payload_too_large', `${param ?? 'The document'}: larger than ${maxFileBytes} bytes (documents.maxFileBytes)`);
    const extension = /\.([A-Za-z0-9]{1,10})$/.exec(fileName ?? '')?.[1]?.toLowerCase();
    const digested = await digest(bytes);
    const key = `${digested} ${extension ?? ''} ${maxCharacters} ${maxPages}`;
    const seesPictures = maxScannedPages > 0 && pictures.canRead(call);
    if (seesPictures && isPicture(bytes)) return readPicture(bytes, `${digested} picture`, call);
    const known = cache.get(key);
    reader ??= createDocumentReader(clock);
    const limits = { maxCharacters, maxPages };
    const document =
      known ?? readSmallText({ bytes, extension, limits }) ?? (await reader.read({ bytes, extension, limits, timeoutMs, param }, call));
    if (known === undefined) cache.set(key, document);
    const pages = (document.scannedPages ?? []).slice(0, maxScannedPages);
    if (!seesPictures || pages.length === 0) return document;
    return readScanned({ document, bytes, pages, timeoutMs, key: `${key} scans ${maxScannedPages}` }, call);
  }

  async function readPicture(bytes: Uint8Array, key: string, call: ReadingCall): Promise<DocumentText> {
    const known = cache.get(key);
    if (known !== undefined) return known;
    const text = await pictures.read(bytes, 'image', call);
    const document = {
      mimeType: imageType(bytes),
      parts: text === '' ? [] : [{ label: 'Image', text }],
      truncated: false,
      notes: ['Read by a model that sees.'],
    };
    cache.set(key, document);
    return document;
  }

  /** Pages are read one after the other. When one fails, those before it are kept, and what is missing is said. */
  async function readScanned(
    {
      document,
      bytes,
      pages,
      timeoutMs,
      key,
    }: {
      readonly document: DocumentText;
      readonly bytes: Uint8Array;
      readonly pages: readonly number[];
      readonly timeoutMs: number;
      readonly key: string;
    },
    call: ReadingCall,
  ): Promise<DocumentText> {
    const known = cache.get(key);
    if (known !== undefined) return known;
    // Pages that an earlier attempt read are not paid for again.
    const earlier = new Map(cache.get(`${key} so far`)?.parts.map(({ label, text }) => [Number(label), text]));
    const read: { page: number; text: string }[] = [];
    let failure: AppError | undefined;
    try {
      const scans = (await reader?.scan({ bytes, pages, maxSide: scanSide, timeoutMs }, call)) ?? [];
      for (const { page, png } of scans) read.push({ page, text: earlier.get(page) ?? (await pictures.read(png, 'page', call)) });
    } catch (error) {
      call.signal.throwIfAborted();
      if (!(error instanceof AppError) || error.code === 'internal') throw error;
      failure = error;
    }
    const whole = read.length === 0 ? document : withScans(document, read);
    if (failure !== undefined) {
      cache.set(`${key} so far`, { ...document, parts: read.map(({ page, text }) => ({ label: String(page), text })) });
      const note = `Further scanned pages were not read: ${failure.message}`;
      return { ...whole, notes: [...whole.notes, note], ...(errorCatalogue[failure.code].retryable && { unread: note }) };
    }
    cache.set(key, whole);
    return whole;
  }

  const api: DocumentsApi = {
    extract,
    join: joinParts,
    show: (document, { more }) => `${printFacts(document)}\n\n${showDocument(document, more)}`,
    reads: (contentType) => readable.has(contentType),
    get maxFileBytes() {
      return config.current.maxFileBytes;
    },
  };
  const sources = createDocumentSources({ media, egress, isInternal });
  return {
    api,
    methods: createDocumentMethods({ api, sources, clock }),
    tool: createReadDocumentTool({ api, sources, taints }),
  };
}

/** Reads a short text without a thread, whose start takes a hundred times as long: folders have thousands of them. Undefined for all else. */
function readSmallText({ bytes, extension, limits }: ReadRequest): DocumentText | undefined {
  if (bytes.byteLength === 0 || bytes.byteLength > maxSmallBytes || bytes.includes(0) || !isUtf8(bytes)) return undefined;
  const text = new TextDecoder().decode(bytes);
  if (/^(?:PK|\{\\rtf)|%PDF-/.test(text.slice(0, 1024)) || text.slice(257, 262) === 'ustar') return undefined;
  const mimeType = kindOfText(text, extension);
  if (mimeType !== 'text/plain' && mimeType !== 'text/markdown') return undefined;
  const sink = new Sink(limits);
  let truncated = false;
  try {
    readPlain(text, sink, mimeType === 'text/markdown');
  } catch (error) {
    if (!(error instanceof Full)) throw error;
    truncated = true;
  }
  return { mimeType, parts: sink.finish(), truncated, notes: sink.notes };
}

const readable: ReadonlySet<string> = new Set(documentTypes);

/** Not on the event loop: large files would hold it. */
async function digest(bytes: Uint8Array): Promise<string> {
  const owned = bytes.buffer instanceof ArrayBuffer ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
  return Buffer.from(await crypto.subtle.digest('SHA-256', owned)).toString('base64url');
}
