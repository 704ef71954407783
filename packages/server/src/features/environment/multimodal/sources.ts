import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Egress } from '../../../kernel/egress.ts';
import { notHere, plainPath, readFileInside } from '../../../kernel/safe-path.ts';
import { readDataUrl } from '../../../llm/wire/data-url.ts';
import type { Agent } from '../../agents/agents/api.ts';
import type { MediaApi } from '../media/api.ts';

export interface SourcesDeps {
  readonly media: Pick<MediaApi, 'find' | 'read'>;
  readonly egress: Pick<Egress, 'request'>;
  /** Whether a path names a file of the daemon in a workspace. */
  readonly isInternal: (path: string) => boolean;
}

interface Wanted {
  /** Named in errors. */
  readonly param: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export interface Source {
  readonly bytes: Uint8Array;
  /** It came from somewhere else than the caller's own uploads and words. */
  readonly isOutside: boolean;
}

/** Reads images and recordings from their sources; each within a limit, each with the authority of the caller. */
export function createSources({ media, egress, isInternal }: SourcesDeps) {
  async function attachment(url: string, wanted: Wanted, call: CallContext): Promise<Source> {
    if (/^https?:/i.test(url)) return { bytes: await fetched(url, wanted, call), isOutside: true };
    const id = url.startsWith('/media/') ? url.slice('/media/'.length) : url;
    const info = await media.find(id, call).catch((error: unknown) => Promise.reject(unresolved(error, wanted.param)));
    if (info.size > wanted.maxBytes) throw tooLarge(wanted);
    const bytes = await media.read(id);
    if (bytes === undefined) throw unresolved(new AppError('not_found', ''), wanted.param);
    return { bytes, isOutside: false };
  }

  async function fetched(url: string, { param, maxBytes, timeoutMs }: Wanted, call: CallContext): Promise<Uint8Array> {
    const answer = await egress.request({
      url,
      maxBytes,
      timeoutMs,
      signal: call.signal,
      accept({ status, headers }) {
        if (status < 200 || status > 299) throw new AppError('unavailable', `${param}: its server answered with status ${status}`, { param });
        if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge({ param, maxBytes });
      },
    });
    if (answer.truncated) throw tooLarge({ param, maxBytes });
    return answer.body;
  }

  return {
    attachment,
    fetched: async (url: string, wanted: Wanted, call: CallContext): Promise<Source> => {
      if (!/^https?:/i.test(url)) throw new AppError('invalid_params', `${wanted.param}: expected an http(s) address`, { param: wanted.param });
      return { bytes: await fetched(url, wanted, call), isOutside: true };
    },
    async file(agent: Pick<Agent, 'workspaceDir'>, path: string, { param, maxBytes }: Wanted): Promise<Source> {
      try {
        const plain = plainPath(path);
        if (isInternal(plain)) throw notHere();
        return { bytes: await readFileInside(agent.workspaceDir, plain, { maxBytes }), isOutside: false };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        throw new AppError(error.code, `${param}: ${error.message}`, { ...error.details, param });
      }
    },
    encoded(text: string, { param, maxBytes }: Pick<Wanted, 'param' | 'maxBytes'>): Source {
      const base64 = (readDataUrl(text)?.base64 ?? text).replace(/\s+/g, '');
      if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(base64))
        throw new AppError('invalid_params', `${param}: expected base64, or a data: URI with base64`, { param });
      if (base64.length * 0.75 - 2 > maxBytes) throw tooLarge({ param, maxBytes });
      return { bytes: Buffer.from(base64, 'base64'), isOutside: false };
    },
  };
}
export type Sources = ReturnType<typeof createSources>;

const tooLarge = ({ param, maxBytes }: Pick<Wanted, 'param' | 'maxBytes'>): AppError =>
  new AppError('payload_too_large', `${param}: larger than ${maxBytes} bytes`, { param });

/** A foreign file fails like an unknown one. */
function unresolved(error: unknown, param: string): unknown {
  if (!(error instanceof AppError) || (error.code !== 'not_found' && error.code !== 'invalid_params')) return error;
  return new AppError('not_found', `${param}: Failed to resolve attachment: expected the id of a media file, /media/<id>, or an http(s) address`, {
    param,
  });
}
