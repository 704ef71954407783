import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** A folder or file of the installation that is unusable, or readable for others; `message` says what to do. */
export class UnsafePathError extends Error {
  override readonly name = 'UnsafePathError';
  readonly path: string;

  constructor(path: string, message: string, options?: ErrorOptions) {
    super(`${path}: ${message}`, options);
    this.path = path;
  }
}

const windows = process.platform === 'win32';

/** Refuses a path that belongs to another user or is accessible to others; `mode` is what chmod should set. */
export function checkPrivate(path: string, stats: Stats, mode: string): void {
  // Windows has neither: the folder inherits the permissions of the user's profile.
  if (windows || process.getuid === undefined) return;
  const uid = process.getuid();
  if (stats.uid !== uid)
    throw new UnsafePathError(
      path,
      `belongs to user ${stats.uid}, and Gatehouse runs as user ${uid}; run it as the owner, or change the owner with: chown -R ${uid} ${quoted(path)}`,
    );
  if ((stats.mode & 0o077) !== 0)
    throw new UnsafePathError(
      path,
      `other users of this machine have access (mode ${modeOf(stats)}), and it holds secrets; close it with: chmod ${mode} ${quoted(path)}`,
    );
}

export function modeOf(stats: Stats): string {
  return (stats.mode & 0o777).toString(8).padStart(4, '0');
}

/** Quotes a path so that a person can paste it into a shell. */
export function quoted(path: string): string {
  return /^[\w/.@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

export interface ReadOptions {
  readonly maxBytes: number;
  /** Configuration is often a link to where a deployment tool keeps it; the program's own secrets never are. */
  readonly followLinks?: boolean;
}

/**
 * Returns the text of a file and its stats, or undefined when there is none. Checks the open descriptor,
 * so that the file cannot be replaced between the check and the read.
 */
export function readOwnFile(
  path: string,
  options: ReadOptions,
): { readonly text: string; readonly stats: Stats; chmod(mode: number): void } | undefined {
  const noFollow = windows || options.followLinks === true ? 0 : constants.O_NOFOLLOW;
  let fd: number;
  try {
    // Without O_NONBLOCK a named pipe at this path would block the start forever.
    fd = openSync(path, constants.O_RDONLY | noFollow | (windows ? 0 : constants.O_NONBLOCK));
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return undefined;
    if (code === 'ELOOP') throw new UnsafePathError(path, 'is a symbolic link; expected a file', { cause: error });
    throw new UnsafePathError(path, `cannot be read (${code})`, { cause: error });
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new UnsafePathError(path, 'expected a file, found something else');
    if (stats.size > options.maxBytes) throw new UnsafePathError(path, `expected at most ${options.maxBytes} bytes, found ${stats.size}`);
    return { text: readFileSync(fd, 'utf8'), stats, chmod: (mode) => chmodFile(path, mode) };
  } finally {
    closeSync(fd);
  }
}

function chmodFile(path: string, mode: number): void {
  const fd = openSync(path, constants.O_RDONLY);
  try {
    fchmodSync(fd, mode);
  } finally {
    closeSync(fd);
  }
}

/**
 * Creates a file (0600) with all of its content or not at all, synced. Returns false when it already exists: two starts
 * at the same time must end up with the same secret.
 */
export function createOwnFile(path: string, content: string): boolean {
  const draft = writeDraft(path, content);
  try {
    linkSync(draft, path);
    unlinkSync(draft);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') {
      unlinkSync(draft);
      return false;
    }
    // A file system without hard links: the only loss is a short window in which another start could be overwritten.
    renameSync(draft, path);
  }
  syncFolder(dirname(path));
  return true;
}

/** Writes and syncs a file next to `path`, and returns its path. Leaves nothing behind when it fails: a full disk must not collect drafts. */
function writeDraft(path: string, content: string): string {
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`;
  const fd = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (windows ? 0 : constants.O_NOFOLLOW), 0o600);
  try {
    writeFileSync(fd, content);
    fsyncSync(fd);
  } catch (error) {
    unlinkSync(draft);
    throw error;
  } finally {
    closeSync(fd);
  }
  return draft;
}

/** Writes a file (0600) with all of its new content or leaves it as it is, synced; one that exists is replaced. */
export function replaceOwnFile(path: string, content: string): void {
  const draft = writeDraft(path, content);
  try {
    renameSync(draft, path);
  } catch (error) {
    unlinkSync(draft);
    throw error;
  }
  syncFolder(dirname(path));
}

/** Without it a new name may be gone after a power loss. */
function syncFolder(path: string): void {
  if (windows) return;
  const fd = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
