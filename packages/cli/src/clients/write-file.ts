import { chmod, copyFile, mkdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
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
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw new CliError(`Cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Replaces a file in one step, readable by its owner only, after a copy of what was there; a link keeps pointing to it. */
export async function writeConfig(name: string, text: string, nowMs: number): Promise<WrittenFile> {
  try {
    await mkdir(dirname(name), { recursive: true, mode: 0o700 });
    const file = await realpath(name).catch(() => name);
    const stamp = new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-');
    const backup = `${file}.${stamp}.bak`;
    const hadFile = await copyFile(file, backup).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return false;
        throw error;
      },
    );
    if (hadFile) await chmod(backup, 0o600);
    const draft = `${file}.${stamp}.tmp`;
    try {
      await writeFile(draft, text, { mode: 0o600, flush: true });
      await rename(draft, file);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    return { file: name, ...(hadFile && { backup }) };
  } catch (error) {
    throw new CliError(`Cannot write ${name}: ${error instanceof Error ? error.message : String(error)}`, {
      hint: 'The token is made already: run the command again when the file can be written; it replaces the token.',
    });
  }
}
