import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, readdir, realpath, rename, unlink } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { AppError, toAppError } from './app-error.ts';
import { isOutOfDescriptors } from './descriptors.ts';

const maxPathBytes = 1024;
const maxNameBytes = 255;
const maxDepth = 32;

/** C0 and C1 controls, invisible characters, characters that change the direction of text, and those that Windows refuses in a name. */
const forbiddenCharacters = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff<>:"|?*\\]/u;
const deviceName = /^(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³])(?:\.|$)/i;
/** A dot, slash, backslash, NUL or percent sign in percent-encoding: somebody decodes once more than we do. */
const encoded = /%(?:2e|2f|5c|00|25|u)/i;

/** Returns one error for missing, forbidden and outside paths alike, so that callers cannot learn which it is. */
export function notHere(): AppError {
  return new AppError(
    'not_found',
    'There is no such file, or none that can be used here: expected a relative path with "/", without "..", links or special files',
  );
}

/**
 * Splits an untrusted relative path into its names. Fails with `not_found` on anything that is absolute,
 * climbs, is encoded, is not in NFC, or could mean something else to another layer or system.
 */
export function parseRelativePath(text: string): readonly string[] {
  if (text === '' || Buffer.byteLength(text) > maxPathBytes || !text.isWellFormed() || encoded.test(text)) throw notHere();
  const names = text.split('/').filter((name, index) => !(name === '.' && index === 0));
  if (names.length === 0 || names.length > maxDepth || names[0] === '~') throw notHere();
  for (const name of names) {
    const plain = name.normalize('NFKC');
    const unsafe =
      name === '' ||
      Buffer.byteLength(name) > maxNameBytes ||
      name.normalize('NFC') !== name ||
      forbiddenCharacters.test(name) ||
      /^\.{1,2}$|[/\\]/.test(plain) ||
      /[. ]$/.test(plain) ||
      deviceName.test(plain);
    if (unsafe) throw notHere();
  }
  return names;
}

/** Returns the path as its names alone, without a leading "./". Fails with `not_found` on what no function here would open. */
export function plainPath(text: string): string {
  return parseRelativePath(text).join('/');
}

/** A directory held open: names are looked up below the descriptor, so that a path swapped meanwhile has no effect. */
export interface Directory extends AsyncDisposable {
  /** Returns the path of `name` for system calls. */
  at(name: string): string;
  sync(): Promise<void>;
}

const noFollow = constants.O_NOFOLLOW ?? 0;
const directoryOnly = constants.O_DIRECTORY ?? 0;
const noBlock = constants.O_NONBLOCK ?? 0;
/** `/proc/self/fd/N/name` is what `openat` is elsewhere; other systems compare the real path after opening. */
const descriptorPaths = process.platform === 'linux' && existsSync('/proc/self/fd');

export async function openDirectory(root: string, names: readonly string[], make: boolean): Promise<Directory> {
  return descriptorPaths ? openByDescriptor(root, names, make) : openByRealPath(root, names, make);
}

async function openByDescriptor(root: string, names: readonly string[], make: boolean): Promise<Directory> {
  let current = await open(root, constants.O_RDONLY | directoryOnly);
  for (const name of names) {
    const parent = current;
    try {
      const path = `/proc/self/fd/${parent.fd}/${name}`;
      if (make) await mkdir(path, 0o700).catch(ignoreExisting);
      current = await open(path, constants.O_RDONLY | directoryOnly | noFollow);
    } finally {
      await parent.close();
    }
  }
  const handle = current;
  return { at: (name) => `/proc/self/fd/${handle.fd}/${name}`, sync: () => handle.sync(), [Symbol.asyncDispose]: () => handle.close() };
}

async function openByRealPath(root: string, names: readonly string[], make: boolean): Promise<Directory> {
  const realRoot = await realpath(root);
  let path = realRoot;
  for (const name of names) {
    path = join(path, name);
    if (make) await mkdir(path, 0o700).catch(ignoreExisting);
    if (!(await lstat(path)).isDirectory()) throw notHere();
  }
  if ((await realpath(path)) !== [realRoot, ...names].join(sep)) throw notHere();
  return { at: (name) => join(path, name), sync: async () => {}, async [Symbol.asyncDispose]() {} };
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
}

/** Error codes of the file system for a name that is missing or not what it should be. */
const meansNotHere = new Set([
  'ENOENT',
  'ENOTDIR',
  'ELOOP',
  'EACCES',
  'EPERM',
  'ENXIO',
  'EISDIR',
  'EMLINK',
  'ENAMETOOLONG',
  'EINVAL',
  'ENODEV',
  'EBUSY',
  'EOPNOTSUPP',
  'ENOTEMPTY',
]);

/** Running out of descriptors says nothing about the name: that is `unavailable`, never `not_found`. */
export async function hidingWhy<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isOutOfDescriptors(error)) throw toAppError(error);
    if (error instanceof Error && 'code' in error && typeof error.code === 'string' && meansNotHere.has(error.code)) throw notHere();
    throw error;
  }
}

/** A file's second name may be anywhere: a link to `/etc/shadow` in a workspace is a plain file except for its count. */
function refuseSpecial(stat: { isFile(): boolean; readonly nlink: number }): void {
  if (!stat.isFile() || stat.nlink > 1) throw notHere();
}

/**
 * Opens a regular file inside `root` for reading; the caller closes the handle. `relative` may be untrusted: links
 * on the way, a second hard link, devices, pipes and everything outside fail with `not_found`, like a missing file.
 * On Linux no link swapped in meanwhile can lead outside; elsewhere the real path is compared, and a local process
 * that may write into `root` can win that race.
 */
export async function openInside(root: string, relative: string): Promise<FileHandle> {
  return openNamed(root, parseRelativePath(relative));
}

function openNamed(root: string, names: readonly string[]): Promise<FileHandle> {
  return hidingWhy(async () => {
    await using directory = await openDirectory(root, names.slice(0, -1), false);
    const path = directory.at(names.at(-1) ?? '');
    const handle = await open(path, constants.O_RDONLY | noFollow | noBlock);
    try {
      refuseSpecial(await handle.stat());
      if (!descriptorPaths) await refuseMoved(root, names, handle);
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  });
}

/**
 * Opens the regular file that a name leads to by any spelling, link or further name of it, as long as it is inside `root`;
 * `not_found` otherwise. For comparing only: path components can be swapped meanwhile, so never show anybody what was read.
 */
export async function openBehind(root: string, name: string): Promise<FileHandle> {
  if (name.includes('\0')) throw notHere();
  return hidingWhy(async () => {
    const top = await realpath(root);
    // Above the root there is nothing, as for a process that sees it as the root.
    const real = await realpath(join(top, join(sep, name)));
    if (!real.startsWith(`${top}${sep}`)) throw notHere();
    const handle = await open(real, constants.O_RDONLY | noFollow | noBlock);
    if ((await handle.stat()).isFile()) return handle;
    await handle.close();
    throw notHere();
  });
}

/** Returns size in bytes and change times, of data and of anything, of a file that `openInside` would open; undefined for everything else. */
export async function statInside(
  root: string,
  relative: string,
): Promise<{ readonly size: number; readonly mtimeMs: number; readonly ctimeMs: number } | undefined> {
  try {
    await using handle = await openInside(root, relative);
    const { size, mtimeMs, ctimeMs } = await handle.stat();
    return { size, mtimeMs, ctimeMs };
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return undefined;
    throw error;
  }
}

async function refuseMoved(root: string, names: readonly string[], handle: FileHandle): Promise<void> {
  const expected = [await realpath(root), ...names].join(sep);
  const [opened, named] = await Promise.all([handle.stat(), lstat(expected)]);
  if ((await realpath(expected)) !== expected || opened.ino !== named.ino || opened.dev !== named.dev) throw notHere();
}

/** Reads a whole file inside `root`. Beyond `maxBytes` it fails with `payload_too_large`, also when the file grows meanwhile. */
export async function readFileInside(root: string, relative: string, options: { readonly maxBytes: number }): Promise<Buffer> {
  await using handle = await openInside(root, relative);
  return await readWhole(handle, options);
}

/** Characters that no name of a listing may have: invisible ones, and those that change the direction of text. */
const unreadableCharacters = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffd]/u;

/**
 * Reads a whole file inside `root` by the path under which `readTree` has listed it: nobody chose it, so other systems may read it
 * otherwise, and it is in the form in which the file system has it. Whether people can read the name is checked.
 */
export async function readListedFile(root: string, path: string, options: { readonly maxBytes: number }): Promise<Buffer> {
  const names = path.split('/');
  if (unreadableCharacters.test(path) || names.some((name) => name === '' || name === '.' || name === '..')) throw notHere();
  await using handle = await openNamed(root, names);
  return await readWhole(handle, options);
}

async function readWhole(handle: FileHandle, options: { readonly maxBytes: number }): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.min(options.maxBytes, (await handle.stat()).size) + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) return buffer.subarray(0, length);
    length += bytesRead;
    if (length === buffer.length) throw new AppError('payload_too_large', `The file is larger than ${options.maxBytes} bytes`);
  }
}

/**
 * Writes a whole file inside `root` with mode 0600, creating missing folders (0700): readers see the old content or the
 * new one, and what was written survives a crash. Fails with `not_found` where `openInside` would, with
 * `payload_too_large` beyond `maxBytes`. Refuses a link of that name, never writes through it.
 */
export async function writeFileInside(
  root: string,
  relative: string,
  data: string | Uint8Array,
  options: { readonly maxBytes: number },
): Promise<void> {
  const names = parseRelativePath(relative);
  const bytes = typeof data === 'string' ? Buffer.from(data) : data;
  if (bytes.byteLength > options.maxBytes) throw new AppError('payload_too_large', `The content is larger than ${options.maxBytes} bytes`);
  return hidingWhy(async () => {
    await using directory = await openDirectory(root, names.slice(0, -1), true);
    await using draft = await beginDraft(directory);
    await draft.write(bytes);
    await draft.keep(names.at(-1) ?? '');
  });
}

/** A file that is written in chunks. Disposed of without `keep`, it leaves nothing behind. */
export interface Draft extends AsyncDisposable {
  write(bytes: Uint8Array): Promise<void>;
  /** Syncs it and renames it to `name`, replacing a file of that name; refuses a link or special file there. */
  keep(name: string): Promise<void>;
}

/** Creates a file (0600) directly in `root`, under a temporary name that `isDraft` recognizes. Fails as `writeFileInside` does. */
export async function draftInside(root: string): Promise<Draft> {
  return hidingWhy(async () => {
    const directory = await openDirectory(root, [], false);
    try {
      const draft = await beginDraft(directory);
      return {
        write: draft.write,
        async keep(name) {
          const names = parseRelativePath(name);
          if (names.length !== 1 || names[0] !== name) throw notHere();
          await hidingWhy(() => draft.keep(name));
        },
        async [Symbol.asyncDispose]() {
          await draft[Symbol.asyncDispose]();
          await directory[Symbol.asyncDispose]();
        },
      };
    } catch (error) {
      await directory[Symbol.asyncDispose]();
      throw error;
    }
  });
}

/** True for the name of a draft: a file that was never kept, or is being written. */
export function isDraft(name: string): boolean {
  return /^\.[0-9a-f]{24}\.tmp$/.test(name);
}

async function beginDraft(directory: Directory): Promise<Draft> {
  const temporary = directory.at(`.${randomBytes(12).toString('hex')}.tmp`);
  const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow, 0o600);
  let state: 'open' | 'closed' | 'kept' = 'open';
  return {
    write: (bytes) => handle.writeFile(bytes),
    async keep(name) {
      const target = directory.at(name);
      const existing = await lstat(target).catch(() => undefined);
      if (existing !== undefined) refuseSpecial(existing);
      await handle.sync();
      state = 'closed';
      await handle.close();
      // Replaces the name, so a link put there since is dropped and its target stays as it was.
      await rename(temporary, target);
      state = 'kept';
      await directory.sync();
    },
    async [Symbol.asyncDispose]() {
      if (state === 'open') await handle.close();
      if (state !== 'kept') await unlink(temporary).catch(() => {});
    },
  };
}

/** Lists plain files directly in a folder inside `root`; empty when the folder does not exist or may not be named (see `openInside`). */
export async function listInside(
  root: string,
  relative: string,
): Promise<readonly { readonly name: string; readonly size: number; readonly mtimeMs: number }[]> {
  try {
    const names = parseRelativePath(relative);
    return await hidingWhy(async () => {
      await using directory = await openDirectory(root, names, false);
      const files: { name: string; size: number; mtimeMs: number }[] = [];
      for (const name of await readdir(directory.at('.'))) {
        const stat = await lstat(directory.at(name)).catch(() => undefined);
        if (stat?.isFile() === true) files.push({ name, size: stat.size, mtimeMs: stat.mtimeMs });
      }
      return files;
    });
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return [];
    throw error;
  }
}

export interface FolderEntry {
  readonly name: string;
  readonly kind: 'file' | 'directory';
  /** Bytes; 0 for a directory. */
  readonly size: number;
  readonly mtimeMs: number;
}

/**
 * Lists what can be used directly in a folder inside `root` (`.` is `root` itself), in no order: plain files and directories
 * whose names could be asked for, without links and special files. Beyond `limit` entries it stops, and `more` is true.
 * Fails with `not_found` where `openInside` would.
 */
export async function listFolderInside(
  root: string,
  relative: string,
  limit: number,
): Promise<{ readonly entries: readonly FolderEntry[]; readonly more: boolean }> {
  const names = relative === '.' ? [] : parseRelativePath(relative);
  return hidingWhy(async () => {
    await using directory = await openDirectory(root, names, false);
    const entries: FolderEntry[] = [];
    for await (const { name } of await opendir(directory.at('.'), { bufferSize: 256 })) {
      if (!isPlainName(name)) continue;
      if (entries.length === limit) return { entries, more: true };
      const stat = await lstat(directory.at(name)).catch(() => undefined);
      if (stat?.isDirectory() === true) entries.push({ name, kind: 'directory', size: 0, mtimeMs: stat.mtimeMs });
      else if (stat?.isFile() === true && stat.nlink === 1) entries.push({ name, kind: 'file', size: stat.size, mtimeMs: stat.mtimeMs });
    }
    return { entries, more: false };
  });
}

function isPlainName(name: string): boolean {
  try {
    return parseRelativePath(name).length === 1;
  } catch {
    return false;
  }
}

/** Returns what has this name inside `root`: `other` is a link or special file, also on the way to it; `missing` means that a file can be created. */
export async function entryInside(root: string, relative: string): Promise<'file' | 'directory' | 'missing' | 'other'> {
  const names = parseRelativePath(relative);
  try {
    await using directory = await openDirectory(root, names.slice(0, -1), false);
    const stat = await lstat(directory.at(names.at(-1) ?? ''));
    if (stat.isDirectory()) return 'directory';
    return stat.isFile() && stat.nlink === 1 ? 'file' : 'other';
  } catch (error) {
    if (isOutOfDescriptors(error)) throw toAppError(error);
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'missing';
    if (error instanceof Error && 'code' in error && typeof error.code === 'string' && meansNotHere.has(error.code)) return 'other';
    if (error instanceof AppError && error.code === 'not_found') return 'other';
    throw error;
  }
}

/** Creates folders (0700) inside `root`, and `root` itself; existing ones are kept. Fails with `not_found` where something else has the name. */
export async function makeFoldersInside(root: string, folders: readonly string[]): Promise<void> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  for (const folder of folders) {
    const names = parseRelativePath(folder);
    await hidingWhy(async () => {
      await using _directory = await openDirectory(root, names, true);
    });
  }
}

/** Removes a file, or a link, inside `root`. Returns false when there is none, or none that may be named (see `openInside`). */
export async function removeInside(root: string, relative: string): Promise<boolean> {
  try {
    const names = parseRelativePath(relative);
    await hidingWhy(async () => {
      await using directory = await openDirectory(root, names.slice(0, -1), false);
      await unlink(directory.at(names.at(-1) ?? ''));
      await directory.sync();
    });
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return false;
    throw error;
  }
}
