import { once } from 'node:events';
import { AppError } from '../../kernel/app-error.ts';

const maxFields = 20;
const maxFieldBytes = 8 * 1024;

/** Reads a multipart/form-data body of one part `file` and some short fields; a field that comes twice is refused. */
export async function readForm(
  contentType: string,
  source: AsyncIterable<Uint8Array>,
  maxFileBytes: number,
): Promise<{ readonly fields: Readonly<Record<string, string>>; readonly file: Buffer }> {
  if (!/^multipart\/form-data\s*;.*boundary\s*=\s*"?[^\s";]/i.test(contentType)) throw malformed('expected multipart/form-data with a boundary');
  // A bundler keeps only the default export of a CommonJS package that is loaded on demand.
  const { Busboy } = (await import('@fastify/busboy')).default;
  const limits = {
    files: 1,
    fields: maxFields,
    parts: maxFields + 1,
    fieldSize: maxFieldBytes,
    fileSize: maxFileBytes + 1,
    headerPairs: 20,
    headerSize: 8192,
  };
  const parser = new Busboy({ headers: { 'content-type': contentType }, limits });
  const fields = new Map<string, string>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  let hasFile = false;
  const stop = new AbortController();
  const refuse = (error: AppError): void => stop.abort(error);
  parser.on('file', (name, file) => {
    file.on('error', () => {});
    if (name !== 'file') refuse(malformed('unexpected file, expected one named "file"', name.slice(0, 100)));
    hasFile = true;
    file.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxFileBytes) refuse(new AppError('payload_too_large', `file: larger than ${maxFileBytes} bytes`, { param: 'file' }));
      else chunks.push(chunk);
    });
  });
  parser.on('field', (name, value, _nameCut, isCut) => {
    if (isCut || fields.has(name)) refuse(malformed(isCut ? 'too long' : 'expected once', name.slice(0, 100)));
    else fields.set(name, value);
  });
  for (const limit of ['filesLimit', 'fieldsLimit', 'partsLimit'] as const) parser.on(limit, () => refuse(malformed('too many parts')));
  parser.on('error', () => refuse(malformed('expected complete multipart/form-data')));
  const finished = once(parser, 'finish', { signal: stop.signal });
  finished.catch(() => {});
  try {
    for await (const chunk of source) {
      stop.signal.throwIfAborted();
      if (!parser.write(chunk)) await once(parser, 'drain', { signal: stop.signal });
    }
    parser.end();
    await finished;
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  }
  if (!hasFile) throw malformed('required, expected a part of this name with the bytes', 'file');
  return { fields: Object.fromEntries(fields), file: Buffer.concat(chunks) };
}

function malformed(message: string, param = 'body'): AppError {
  return new AppError('invalid_params', `${param}: ${message}`, { param, issues: [{ path: param, message }] });
}
