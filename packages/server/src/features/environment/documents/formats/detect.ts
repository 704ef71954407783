import { Buffer, isUtf8 } from 'node:buffer';
import { listGzip, listTar, listZip } from './archive.ts';
import { Refused, type Sink } from './sink.ts';
import { kindOfText } from './text-kind.ts';
import { Zip } from './zip.ts';

export interface Detected {
  readonly mimeType: string;
  readonly read: (sink: Sink) => Promise<void> | void;
}

const office = 'application/vnd.openxmlformats-officedocument';
const open = 'application/vnd.oasis.opendocument';

/** Determines the type by the bytes; the extension only chooses among kinds of text. Parsers are loaded when they are needed. */
export async function detect(bytes: Uint8Array, extension: string | undefined): Promise<Detected> {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 4096));
  const head = start.toString('latin1');
  if (head.slice(0, 1024).includes('%PDF-'))
    return { mimeType: 'application/pdf', read: async (sink) => (await import('./pdf.ts')).readPdf(bytes, sink) };
  if (/^PK(?:\u0003\u0004|\u0005\u0006)/.test(head)) return detectZip(bytes);
  if (head.startsWith('\u001f\u008b')) return { mimeType: 'application/gzip', read: (sink) => listGzip(bytes, sink) };
  if (head.slice(257, 262) === 'ustar') return { mimeType: 'application/x-tar', read: (sink) => listTar(once(bytes), sink) };
  if (head.startsWith('{\\rtf'))
    return { mimeType: 'application/rtf', read: async (sink) => (await import('./rtf.ts')).readRtf(Buffer.from(bytes).toString('latin1'), sink) };
  if (head.startsWith('\u00d0\u00cf\u0011\u00e0\u00a1\u00b1\u001a\u00e1')) throw oldOffice(bytes);
  if (bytes.byteLength === 0) throw new Refused('broken', 'is empty');
  return detectText(bytes, extension);
}

async function detectZip(bytes: Uint8Array): Promise<Detected> {
  const zip = new Zip(bytes);
  const mimeType = zip.has('mimetype') ? (await zip.read('mimetype'))?.toString('latin1', 0, 100).trim() : undefined;
  if (zip.has('word/document.xml'))
    return { mimeType: `${office}.wordprocessingml.document`, read: async (sink) => (await import('./word.ts')).readWord(zip, sink) };
  if (zip.has('xl/workbook.xml'))
    return { mimeType: `${office}.spreadsheetml.sheet`, read: async (sink) => (await import('./sheets.ts')).readSheets(zip, sink) };
  if (zip.has('ppt/presentation.xml'))
    return { mimeType: `${office}.presentationml.presentation`, read: async (sink) => (await import('./slides.ts')).readSlides(zip, sink) };
  if (mimeType === 'application/epub+zip') return { mimeType, read: async (sink) => (await import('./epub.ts')).readEpub(zip, sink) };
  if (mimeType === `${open}.text` || mimeType === `${open}.spreadsheet` || mimeType === `${open}.presentation`)
    return { mimeType, read: async (sink) => (await import('./open-document.ts')).readOpenDocument(zip, sink) };
  return { mimeType: 'application/zip', read: (sink) => listZip(zip, sink) };
}

/** Office wraps documents with a password in the container of its old formats. */
function oldOffice(bytes: Uint8Array): Refused {
  const isEncrypted = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(Buffer.from('EncryptedPackage', 'utf16le'));
  return isEncrypted
    ? new Refused('encrypted', 'is encrypted: remove its password first')
    : new Refused('unsupported', 'is of an old Office format (doc, xls, ppt, msg): save it in the current one');
}

function detectText(bytes: Uint8Array, extension: string | undefined): Detected {
  const text = decode(bytes);
  const mimeType = kindOfText(text, extension);
  return {
    mimeType,
    async read(sink) {
      if (mimeType === 'text/html') return (await import('./markup.ts')).readMarkup(text, sink);
      if (mimeType === 'message/rfc822') return (await import('./mail.ts')).readMail(bytes, sink);
      const { readCsv, readPlain } = await import('./plain.ts');
      if (mimeType === 'text/csv') return readCsv(text, sink);
      if (mimeType === 'text/tab-separated-values') return readCsv(text, sink, '\t');
      return readPlain(text, sink, mimeType === 'text/markdown');
    },
  };
}

function decode(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  if (bytes.includes(0)) throw new Refused('unsupported', 'is of a type whose text cannot be extracted');
  return new TextDecoder(isUtf8(bytes) ? 'utf-8' : 'windows-1252').decode(bytes);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
