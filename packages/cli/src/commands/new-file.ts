import { createWriteStream } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CliError, usageError } from '../failure.ts';
import type { Io } from '../io.ts';

/**
 * Writes a new file, readable by its owner only; never overwrites an existing one. Removes a file that
 * could not be completed.
 */
export async function writeNewFile(name: string, content: ReadableStream<Uint8Array>, io: Io): Promise<{ file: string; bytes: number }> {
  const file = resolve(io.workingDir, name);
  const target = createWriteStream(file, { flags: 'wx', mode: 0o600 });
  try {
    await pipeline(Readable.fromWeb(content), target);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw usageError(`${file} already exists.`, 'Choose another name.');
    if (!target.pending) await unlink(file).catch(() => undefined);
    throw new CliError(`Cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return { file, bytes: target.bytesWritten };
}
