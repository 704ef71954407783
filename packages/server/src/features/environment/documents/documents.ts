import type { CallContext } from '../../../kernel/call-context.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { Egress } from '../../../kernel/egress.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { MediaApi } from '../media/api.ts';
import type { FileTaints } from '../workspace/api.ts';
import { type DocumentFile, type DocumentsApi, type DocumentText, documentTypes } from './api.ts';
import type { DocumentsConfig } from './config.ts';
import { createDocumentReader, type ReadInThread } from './document-reader.ts';
import { createDocumentMethods, type DocumentMethods } from './methods.ts';
import { joinParts, printFacts, showDocument } from './shown.ts';
import { createDocumentSources } from './sources.ts';
import { TextCache } from './text-cache.ts';
import { createReadDocumentTool } from './tool.ts';

export interface DocumentsDeps {
  readonly clock: Clock;
  readonly config: Live<DocumentsConfig>;
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly egress: Pick<Egress, 'request'>;
  readonly taints: Pick<FileTaints, 'isTainted'>;
  /** Whether a path names a file of the daemon in a workspace. */
  readonly isInternal: (path: string) => boolean;
}

export interface Documents {
  readonly api: DocumentsApi;
  readonly methods: DocumentMethods;
  readonly tool: Tool;
}

/** Text of documents: for methods, for agents, and for attachments that a model cannot read. */
export function createDocuments({ clock, config, media, egress, taints, isInternal }: DocumentsDeps): Documents {
  const cache = new TextCache();
  let reader: ReadInThread | undefined;

  async function extract({ bytes, fileName, param }: DocumentFile, call: Pick<CallContext, 'identity' | 'signal'>): Promise<DocumentText> {
    const { maxFileBytes, maxCharacters, maxPages, timeoutMs } = config.current;
    if (bytes.byteLength > maxFileBytes)
      throw new AppError('payload_too_large', `${param ?? 'The document'}: larger than ${maxFileBytes} bytes (documents.maxFileBytes)`);
    const extension = /\.([A-Za-z0-9]{1,10})$/.exec(fileName ?? '')?.[1]?.toLowerCase();
    const key = `${await digest(bytes)} ${extension ?? ''} ${maxCharacters} ${maxPages}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    reader ??= createDocumentReader(clock);
    const document = await reader({ bytes, extension, limits: { maxCharacters, maxPages }, timeoutMs, param }, call);
    cache.set(key, document);
    return document;
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

const readable: ReadonlySet<string> = new Set(documentTypes);

/** Not on the event loop: large files would hold it. */
async function digest(bytes: Uint8Array): Promise<string> {
  const owned = bytes.buffer instanceof ArrayBuffer ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
  return Buffer.from(await crypto.subtle.digest('SHA-256', owned)).toString('base64url');
}
