import { extensionOf } from './file-name.ts';

/** Text types by extension: magic bytes cannot distinguish them. */
const textTypes: Readonly<Record<string, string>> = {
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  html: 'text/html',
  htm: 'text/html',
  css: 'text/css',
  js: 'text/javascript',
  mjs: 'text/javascript',
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  xml: 'application/xml',
  svg: 'image/svg+xml',
  ics: 'text/calendar',
  vcf: 'text/vcard',
  rtf: 'application/rtf',
};

/** Types for files without a readable sidecar (http-gateway.md §4.7). */
const knownTypes: Readonly<Record<string, string>> = {
  ...textTypes,
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  mp3: 'audio/mpeg',
  ogg: 'audio/ogg',
  mp4: 'video/mp4',
  pdf: 'application/pdf',
};

const binary = 'application/octet-stream';
/** Older Office files share one container, which magic bytes cannot see through. */
const officeTypes = /^application\/(?:msword|vnd\.ms-(?:excel|powerpoint|outlook|project))$/;
/** Enough for every signature, and for the first entry of the zip containers that Office writes. */
const headBytes = 64 * 1024;

export function typeOfExtension(name: string): string {
  return knownTypes[extensionOf(name) ?? ''] ?? binary;
}

export interface ContentType {
  readonly contentType: string;
  /** Extension of the stored file, without the dot; letters and digits. */
  readonly extension: string;
}

/** Inspects bytes as they pass and reports their type at the end. */
export interface Inspector {
  add(chunk: Uint8Array): void;
  /** `declared` and `fileName` only choose among kinds of text, or the content of an opaque container; they never override the bytes. */
  decide(declared: string | undefined, fileName: string | undefined): Promise<ContentType>;
}

export function createInspector(): Inspector {
  const head: Uint8Array[] = [];
  let kept = 0;
  let isText = true;
  const decoder = new TextDecoder('utf-8', { fatal: true });
  return {
    add(chunk) {
      if (kept < headBytes) {
        const part = chunk.subarray(0, headBytes - kept);
        head.push(part);
        kept += part.length;
      }
      if (isText) isText = !chunk.includes(0) && decodes(() => decoder.decode(chunk, { stream: true }));
    },
    async decide(declared, fileName) {
      const { fileTypeFromBuffer } = await import('file-type');
      // Untrusted, truncated input: any parser error means "unknown type".
      const start = Buffer.concat(head);
      const found = (await fileTypeFromBuffer(start).catch(() => undefined)) ?? (isTagged(start) ? { mime: 'audio/mpeg', ext: 'mp3' } : undefined);
      const named = essence(declared);
      return isText && decodes(() => decoder.decode()) ? textType(found?.mime, named, fileName) : binaryType(found, named);
    },
  };
}

/** Music often starts with a picture that is longer than the head. */
function isTagged(start: Buffer): boolean {
  return start.length > 10 && start.toString('latin1', 0, 3) === 'ID3';
}

function decodes(decode: () => string): boolean {
  try {
    decode();
    return true;
  } catch {
    return false;
  }
}

/** Some signatures are two letters ("BM"): in pure text, only those of text formats count. */
function textType(magic: string | undefined, declared: string | undefined, fileName: string | undefined): ContentType {
  if (magic === 'application/pdf' || magic === 'application/postscript')
    return { contentType: magic, extension: magic === 'application/pdf' ? 'pdf' : 'ps' };
  const given =
    declared !== undefined && (Object.values(textTypes).includes(declared) || /^text\/[a-z0-9.+-]{1,60}$/.test(declared)) ? declared : undefined;
  // A client that declares only "text" is trusted about the file name.
  const byName = given === undefined || given === 'text/plain' ? textTypes[extensionOf(fileName) ?? ''] : undefined;
  const seen = magic === 'application/xml' || magic?.startsWith('text/') === true ? magic : undefined;
  const contentType = byName ?? given ?? seen ?? 'text/plain';
  return { contentType, extension: Object.entries(textTypes).find(([, type]) => type === contentType)?.[0] ?? 'txt' };
}

function binaryType(found: { readonly mime: string; readonly ext: string } | undefined, declared: string | undefined): ContentType {
  if (found === undefined) return { contentType: binary, extension: 'bin' };
  const contentType = essence(found.mime) ?? binary;
  if (contentType === 'application/x-cfb' && declared !== undefined && officeTypes.test(declared)) return { contentType: declared, extension: 'bin' };
  return { contentType, extension: /^[a-z0-9]{1,10}$/.test(found.ext) ? found.ext : 'bin' };
}

/** Returns `type/subtype` in lower case without parameters; undefined for anything else. */
function essence(contentType: string | undefined): string | undefined {
  const text = contentType?.split(';')[0]?.trim().toLowerCase();
  return text !== undefined && mediaType.test(text) ? text : undefined;
}

/** Whether a type may appear in a header. */
export const mediaType = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,60}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}$/;
