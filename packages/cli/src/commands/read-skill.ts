import { createReadStream } from 'node:fs';
import { opendir, stat } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { unreadable, usageError } from '../failure.ts';
import type { Io } from '../io.ts';

/** The limits of the daemon: a larger folder is not read at all. */
const maxFiles = 200;
const maxBytes = 32 * 1024 * 1024;

export interface LocalSkill {
  readonly name: string;
  readonly files: readonly { readonly path: string; readonly content: string }[];
}

/** Reads a folder with a SKILL.md, or a single SKILL.md, in path order; rejects symbolic links. */
export async function readSkill(given: string, io: Io): Promise<LocalSkill> {
  const root = resolve(io.workingDir, given);
  const isFolder = await stat(root).then(
    (found) => found.isDirectory(),
    (error: Error) => {
      throw unreadable(root, error);
    },
  );
  if (!isFolder) return { name: basename(resolve(root, '..')), files: [{ path: 'SKILL.md', content: await readLocalText(root, maxBytes, io) }] };
  const files: { path: string; content: string }[] = [];
  let left = maxBytes;
  for await (const entry of await opendir(root, { recursive: true })) {
    const file = join(entry.parentPath, entry.name);
    const path = relative(root, file).split(sep).join('/');
    if (entry.isDirectory() || path.split('/').includes('.git')) continue;
    if (!entry.isFile()) throw usageError(`${path} is not a regular file.`, 'A skill may only contain text files; links are not followed.');
    if (files.length >= maxFiles) throw usageError(`The folder has more than ${maxFiles} files.`);
    const content = await readLocalText(file, left, io);
    left -= Buffer.byteLength(content);
    files.push({ path, content });
  }
  if (!files.some(({ path }) => path === 'SKILL.md')) throw usageError(`No SKILL.md in ${root}.`);
  return { name: basename(root), files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)) };
}

/** Reads a local UTF-8 file of limited size. */
export async function readLocalText(given: string, limit: number, io: Io): Promise<string> {
  const file = resolve(io.workingDir, given);
  try {
    const { size } = await stat(file);
    if (size > limit) throw usageError(`${file} is too large: ${size} bytes, the limit is ${limit}.`);
    const chunks: Buffer[] = [];
    let bytes = 0;
    // Devices and pipes report no size, and a file may grow while it is read.
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > limit) throw usageError(`${file} is too large: more than ${limit} bytes.`);
      chunks.push(chunk);
    }
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    if (error instanceof TypeError) throw usageError(`${file} is not valid UTF-8 text.`);
    if (error instanceof Error && 'code' in error) throw unreadable(file, error);
    throw error;
  }
}
