import { chmod, copyFile, mkdir, readFile, readlink, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { CliError } from '../failure.ts';

export interface WrittenFile {
  readonly file: string;
  /** Copy of what was there; absent when the file is new. */
  readonly backup?: string;
}

/** Text of a file, empty when there is none. */
export async function readConfig(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return '';
    throw new CliError(`Cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A file that is about to be replaced. */
export interface PreparedFile {
  /** Replaces the file in one step. */
  commit(text: string): Promise<WrittenFile>;
  /** Leaves everything as it was. */
  discard(): Promise<void>;
}

/**
 * Prepares to replace a file, readable by its owner only: copies what was there, and writes a draft of `text` beside it, which shows
 * that there is room and permission. A link keeps pointing to where it leads, also where nothing is there yet.
 */
export async function prepareConfig(name: string, text: string, nowMs: number): Promise<PreparedFile> {
  const stamp = new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-');
  try {
    await mkdir(dirname(name), { recursive: true, mode: 0o700 });
    const file = await targetOf(name);
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    const [backup, draft] = [`${file}.${stamp}.bak`, `${file}.${stamp}.tmp`];
    const hadFile = await copyIfThere(file, backup);
    const discard = async (): Promise<void> => {
      await rm(draft, { force: true });
      if (hadFile) await rm(backup, { force: true });
    };
    const write = async (content: string): Promise<void> => {
      try {
        await writeFile(draft, content, { mode: 0o600, flush: true });
      } catch (error) {
        await discard();
        throw error;
      }
    };
    await write(text);
    return {
      discard,
      async commit(content) {
        try {
          await write(content);
          await rename(draft, file);
        } catch (error) {
          await rm(draft, { force: true });
          throw notWritten(
            name,
            error,
            'The new token is made, and the former secret no longer works: run the command again when the file can be written.',
          );
        }
        return { file: name, ...(hadFile && { backup }) };
      },
    };
  } catch (error) {
    throw notWritten(name, error, 'Nothing was changed: the former token, if there was one, still works.');
  }
}

const notWritten = (name: string, error: unknown, hint: string) =>
  new CliError(`Cannot write ${name}: ${error instanceof Error ? error.message : String(error)}`, { hint });

/** Where a name leads through links, also when the last one leads to nothing. */
async function targetOf(name: string): Promise<string> {
  try {
    return await realpath(name);
  } catch (error) {
    if (!isMissing(error)) throw error;
    const link = await readlink(name).catch(() => undefined);
    return link === undefined ? name : targetOf(resolve(await realpath(dirname(name)), link));
  }
}

async function copyIfThere(file: string, backup: string): Promise<boolean> {
  try {
    await copyFile(file, backup);
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  await chmod(backup, 0o600);
  return true;
}

const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT';
