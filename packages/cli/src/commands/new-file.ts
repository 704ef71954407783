import { createWriteStream } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CliError, usageError } from '../failure.ts';
import type { Io } from '../io.ts';

/**
 * Writes a file that does not exist yet, readable by its owner only; what is there is never overwritten. A file that
 * could not be finished is taken away.
 */
export async function writeNewFile(name: string, content: ReadableStream<Uint8Array>, io: Io): Promise<{ file: string; bytes: number }> {
  const file = resolve(io.workingDir, name);
  const target = createWriteStream(file, { flags: 'wx', mode: 0o600 });
  try {
    await pipeline(Readable.fromWeb(content), target);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw usageError(`${file} exists already.`, 'Choose another name.');
    if (!target.pending) await unlink(file).catch(() => undefined);
    throw new CliError(`Cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return { file, bytes: target.bytesWritten };
}
