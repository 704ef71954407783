import { lstat, opendir, readFile, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { CliError, unreadable, usageError } from '../failure.ts';
import { Json5Error, parseJson5 } from './json5.ts';

const maxFileBytes = 8 * 1024 * 1024;
const maxTotalBytes = 128 * 1024 * 1024;
const maxFiles = 5000;

/** The folder of another product. Its files are not trusted: sizes are limited, and links that lead out of it are not followed. */
export class SourceFolder {
  readonly root: string;
  #bytes = 0;
  #files = 0;

  private constructor(root: string) {
    this.root = root;
  }

  static async open(path: string): Promise<SourceFolder> {
    return new SourceFolder(
      await realpath(path).catch((error: Error) => {
        throw unreadable(path, error);
      }),
    );
  }

  /** Returns the path relative to the folder, for reports; undefined when it lies outside. */
  inside(path: string): string | undefined {
    const local = relative(this.root, resolve(this.root, path));
    return local === '..' || local.startsWith(`..${sep}`) || isAbsolute(local) ? undefined : local;
  }

  /** Returns the path of a regular file after all links; undefined when there is none. Fails for a link that leads out. */
  async file(path: string, limit = maxFileBytes): Promise<string | undefined> {
    const local = this.inside(path);
    if (local === undefined) throw usageError(`${path} is outside of ${this.root}; it is not read.`);
    const real = await realpath(join(this.root, local)).catch(() => undefined);
    if (real === undefined) return undefined;
    if (this.inside(real) === undefined) throw usageError(`${local} is a link that leads out of ${this.root}; it is not followed.`);
    const found = await lstat(real);
    if (!found.isFile()) return undefined;
    if (found.size > limit) throw usageError(`${local} is too large: ${found.size} bytes, the limit is ${limit}.`);
    return real;
  }

  /** Returns the text of a file, undefined when there is none. */
  async text(path: string): Promise<string | undefined> {
    const file = await this.file(path);
    if (file === undefined) return undefined;
    const bytes = await readFile(file).catch((error: Error) => {
      throw unreadable(file, error);
    });
    this.#bytes += bytes.length;
    this.#files += 1;
    if (this.#bytes > maxTotalBytes || this.#files > maxFiles)
      throw usageError(`${this.root} holds more than is imported at once: ${maxFiles} files, ${maxTotalBytes} bytes.`);
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
      throw usageError(`${this.inside(path) ?? path} is not valid UTF-8 text.`);
    }
  }

  /** Parses a file of JSON or JSON5; undefined when there is none. */
  async json(path: string): Promise<unknown> {
    const text = await this.text(path);
    if (text === undefined) return undefined;
    try {
      return parseJson5(text);
    } catch (error) {
      if (!(error instanceof Json5Error)) throw error;
      throw new CliError(`${this.inside(path) ?? path}:${error.line}:${error.column}: ${error.message}.`, {
        hint: 'Nothing was imported. Repair the file, or remove it if you do not need it.',
      });
    }
  }

  /** Names of the entries of a folder, sorted; none when it does not exist. Hidden ones and links are left out. */
  async entries(path: string, kind: 'file' | 'folder'): Promise<string[]> {
    const local = this.inside(path);
    if (local === undefined) return [];
    const names: string[] = [];
    try {
      for await (const entry of await opendir(join(this.root, local))) {
        if (entry.name.startsWith('.') || !(kind === 'file' ? entry.isFile() : entry.isDirectory())) continue;
        names.push(entry.name);
        if (names.length > maxFiles) throw usageError(`${local} has more than ${maxFiles} entries.`);
      }
    } catch (error) {
      if (error instanceof CliError) throw error;
      return [];
    }
    return names.toSorted();
  }
}
