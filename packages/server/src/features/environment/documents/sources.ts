import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Egress } from '../../../kernel/egress.ts';
import { createLanes, type Lease } from '../../../kernel/lane.ts';
import { notHere, plainPath, readFileInside } from '../../../kernel/safe-path.ts';
import { readDataUrl } from '../../../llm/wire/data-url.ts';
import type { MediaApi } from '../media/api.ts';

export interface DocumentSourcesDeps {
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly egress: Pick<Egress, 'request'>;
  readonly isInternal: (path: string) => boolean;
}

export interface SourceFile {
  readonly bytes: Uint8Array;
  readonly fileName?: string | undefined;
}

const fetchMs = 30_000;
/** Documents in memory at once: those queued for a thread would fill it. */
const maxLoaded = 8;

export type DocumentSources = ReturnType<typeof createDocumentSources>;

/** Reads the bytes of documents from their sources, each with the authority of the caller. */
export function createDocumentSources({ media, egress, isInternal }: DocumentSourcesDeps) {
  const loaded = createLanes();
  let documents = 0;

  async function stored(id: string, param: string, maxBytes: number, call: CallContext): Promise<SourceFile> {
    const { size, fileName } = await media.find(id, call).catch((error: unknown) => Promise.reject(unresolved(error, param)));
    if (size > maxBytes) throw tooLarge(param, maxBytes);
    const bytes = await media.read(id);
    if (bytes === undefined) throw unresolved(new AppError('not_found', ''), param);
    return { bytes, fileName: fileName ?? id };
  }

  return {
    /** Waits until a document may be loaded; dispose of the result when it is not needed any more. */
    slot({ identity, signal }: Pick<CallContext, 'identity' | 'signal'>): Promise<Lease> {
      documents += 1;
      return loaded.acquire({ key: String(documents), group: 'documents', groupLimit: maxLoaded, principalId: identity.principalId, signal });
    },
    stored,
    async attachment(url: string, param: string, maxBytes: number, call: CallContext): Promise<SourceFile> {
      if (!/^https?:/i.test(url)) return stored(url.startsWith('/media/') ? url.slice('/media/'.length) : url, param, maxBytes, call);
      const answer = await egress.request({
        url,
        maxBytes,
        timeoutMs: fetchMs,
        signal: call.signal,
        accept({ status, headers }) {
          if (status < 200 || status > 299) throw new AppError('unavailable', `${param}: its server answered with status ${status}`, { param });
          if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(param, maxBytes);
        },
      });
      if (answer.truncated) throw tooLarge(param, maxBytes);
      return { bytes: answer.body, fileName: nameIn(answer.url) };
    },
    async file(workspaceDir: string, path: string, maxBytes: number): Promise<SourceFile> {
      const plain = plainPath(path);
      if (isInternal(plain)) throw notHere();
      return { bytes: await readFileInside(workspaceDir, plain, { maxBytes }), fileName: plain.split('/').at(-1) };
    },
    encoded(text: string, param: string, maxBytes: number): Uint8Array {
      const base64 = readDataUrl(text)?.base64 ?? text;
      if (base64.length * 0.75 - 2 > maxBytes) throw tooLarge(param, maxBytes);
      if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(base64))
        throw new AppError('invalid_params', `${param}: expected base64, or a data: URI with base64`, { param });
      return Buffer.from(base64, 'base64');
    },
  };
}

const tooLarge = (param: string, maxBytes: number): AppError =>
  new AppError('payload_too_large', `${param}: larger than ${maxBytes} bytes (documents.maxFileBytes)`, { param });

/** A foreign file fails like an unknown one. */
function unresolved(error: unknown, param: string): unknown {
  if (!(error instanceof AppError) || (error.code !== 'not_found' && error.code !== 'invalid_params')) return error;
  return new AppError('not_found', `${param}: Failed to resolve attachment: expected the id of a media file, /media/<id>, or an http(s) address`, {
    param,
  });
}

function nameIn(url: string): string | undefined {
  const name = URL.parse(url)?.pathname.split('/').at(-1)?.slice(0, 255);
  return name === '' ? undefined : name;
}
