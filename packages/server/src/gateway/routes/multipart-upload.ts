import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type { Upload } from '../../features/environment/media/api.ts';
import { AppError } from '../../kernel/app-error.ts';

/** Overhead around the file: delimiters and the header of its part. */
export const multipartOverheadBytes = 64 * 1024;

const limits = { files: 1, fields: 0, parts: 2, headerPairs: 20, headerSize: 8 * 1024 };

function malformed(message: string, param = 'body'): AppError {
  return new AppError('invalid_params', `${param}: ${message}`, { param, issues: [{ path: param, message }] });
}

/**
 * Returns the single part `file` of a multipart/form-data body, as a stream. Resolves when the part starts; the rest of the
 * body is checked before the part's bytes end, so that nothing of a body with further content is kept. `signal` releases
 * `source`, even when nobody ever reads the bytes.
 */
export async function multipartUpload(contentType: string, source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Upload> {
  if (!/;\s*boundary\s*=\s*"?[^\s";]/i.test(contentType)) throw malformed('expected multipart/form-data with a boundary');
  // A bundler keeps only the default export of a CommonJS package that is loaded on demand.
  const { Busboy } = (await import('@fastify/busboy')).default;
  const parser = new Busboy({ headers: { 'content-type': contentType }, limits });
  const begun = Promise.withResolvers<Part>();
  let stream: Readable | undefined;
  const stop = new AbortController();
  signal.addEventListener('abort', () => stop.abort(), { once: true });
  const refuse = (error: AppError): void => {
    stop.abort(error);
    begun.reject(error);
    stream?.destroy(error);
  };
  const unexpected = (): void => refuse(malformed('expected the file and nothing else', 'file'));
  parser.on('file', (field, file, fileName, _encoding, contentType) => {
    stream = file;
    // Its errors are those of the whole body; without a listener they would crash the process.
    file.on('error', () => {});
    if (field === 'file') begun.resolve({ file, fileName, contentType });
    else refuse(malformed('unexpected part, expected one named "file"', field?.slice(0, 100)));
  });
  parser.on('filesLimit', unexpected).on('fieldsLimit', unexpected).on('partsLimit', unexpected);
  parser.on('error', () => refuse(malformed('expected complete multipart/form-data')));

  async function feed(): Promise<void> {
    const finished = once(parser, 'finish', { signal: stop.signal });
    finished.catch(() => {});
    for await (const chunk of source) {
      stop.signal.throwIfAborted();
      if (!parser.write(chunk)) await once(parser, 'drain', { signal: stop.signal });
    }
    parser.end();
    await finished;
    begun.reject(malformed('required, expected a part of this name with the bytes', 'file'));
  }
  const fed = feed().catch((error: unknown) => {
    const reason: unknown = stop.signal.aborted ? stop.signal.reason : error;
    begun.reject(reason);
    stream?.destroy(reason instanceof Error ? reason : undefined);
    throw reason;
  });
  fed.catch(() => {});
  const { file, ...about } = await begun.promise;

  async function* body(): AsyncGenerator<Uint8Array> {
    try {
      yield* file;
      await fed;
    } finally {
      stop.abort();
      await fed.catch(() => {});
    }
  }
  return { ...about, body: body() };
}

interface Part {
  readonly file: Readable;
  readonly fileName: string;
  readonly contentType: string;
}
