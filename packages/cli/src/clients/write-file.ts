import { chmod, copyFile, mkdir, readFile, readlink, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { CliError } from '../failure.ts';

export interface WrittenFile {
  readonly file: string;
  /** Backup of the former file; absent when the file is new. */
  readonly backup?: string;
}

/** Reads a file; returns an empty text when there is none. */
export async function readConfig(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return '';
    throw new CliError(`Cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** A prepared replacement of a file. */
export interface PreparedFile {
  /** Replaces the file atomically. */
  commit(text: string): Promise<WrittenFile>;
  /** Discards the draft and the backup. */
  discard(): Promise<void>;
}

/**
 * Prepares to replace a file, readable by its owner only: copies the former one, and writes a draft of `text` next to it, which checks
 * disk space and permissions. A symbolic link is kept and its target replaced, even if that does not exist yet.
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
            'The new token was created, and the former secret no longer works: run the command again when the file can be written.',
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

/** Resolves the symbolic links of a path, even if the last target does not exist. */
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
