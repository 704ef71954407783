import { lstatSync, readdirSync, type Stats, unlinkSync } from 'node:fs';
import { holdFolder, isClosed, isGone } from '../../../../kernel/hold-folder.ts';

/** Contents of a workspace. Paths are for people: bytes that are not UTF-8 are replaced in them. */
export interface Usage {
  /** Bytes allocated by the file system: a sparse file counts what was written to it. */
  readonly bytes: number;
  /** Files, folders and links. */
  readonly files: number;
  /** Counting stopped early, at more files than requested. */
  readonly more: boolean;
  /** A folder that cannot be counted: nested too deeply, or closed to the daemon. */
  readonly uncounted?: string;
  /** The largest entries at the top and single files, largest first. */
  readonly largest: readonly { readonly path: string; readonly bytes: number }[];
  /** Pipes, sockets and devices, the first of them. */
  readonly special: readonly string[];
  /** The first removed files. */
  readonly removed: readonly string[];
}

export interface CountRequest {
  readonly root: string;
  readonly maxFiles: number;
  /** Drafts of files that have not changed since then were left by a crash, and are removed. */
  readonly draftsBeforeMs: number;
  /** Removes pipes, sockets and devices with names that git opens. */
  readonly forGit?: boolean;
}

/** Each level holds a descriptor. */
const maxDepth = 100;
/** Below the kernel's limit on paths. */
const maxPathBytes = 3800;
const maxNamed = 100;
const largestFiles = 5;
const draft = /^\.[0-9a-f]{24}\.tmp$/;

type Bytes = string;
/** Names need not be UTF-8: each byte is a character here. */
const toPath = (path: Bytes) => Buffer.from(path, 'latin1');
const toText = (path: Bytes) => toPath(path).toString('utf8');

/** Counts what is below a folder, without following links; an empty or missing folder holds nothing. Blocking: run it in a separate thread. */
export function countFiles({ root, maxFiles, draftsBeforeMs, forGit = false }: CountRequest): Usage {
  const tops = new Map<Bytes, number>();
  const large: { path: Bytes; bytes: number }[] = [];
  const special: Bytes[] = [];
  const removed: Bytes[] = [];
  /** Files with several names. */
  const counted = new Set<string>();
  let bytes = 0;
  let files = 0;
  let uncounted: Bytes | undefined;

  const take = (path: Bytes, stat: Stats) => {
    if (stat.nlink > 1 && !stat.isDirectory()) {
      const id = `${stat.dev} ${stat.ino}`;
      if (counted.has(id)) return;
      counted.add(id);
    }
    // Systems that count no blocks report only sizes.
    const size = stat.blocks === undefined ? stat.size : stat.blocks * 512;
    bytes += size;
    const [top = path] = path.split('/', 1);
    tops.set(top, (tops.get(top) ?? 0) + size);
    if (!stat.isFile()) return;
    if (large.length === largestFiles && size <= (large.at(-1)?.bytes ?? 0)) return;
    large.push({ path, bytes: size });
    large.sort((a, b) => b.bytes - a.bytes);
    large.length = Math.min(large.length, largestFiles);
  };

  const remove = (at: Bytes, path: Bytes) => {
    unlinkSync(toPath(at));
    if (removed.length < maxNamed) removed.push(path);
  };
  const base = Buffer.from(root).toString('latin1');
  const walk = (folder: Bytes, inside: Bytes, depth: number): void => {
    for (const name of readdirSync(toPath(folder), 'latin1')) {
      files += 1;
      if (files > maxFiles) return;
      const path = `${inside}${name}`;
      // Names are read from the open folder; sizes by path, which is much cheaper and at worst yields a wrong number for a link.
      const isLong = base.length + path.length > maxPathBytes;
      try {
        const stat = lstatSync(toPath(isLong ? `${folder}/${name}` : `${base}/${path}`), { throwIfNoEntry: false });
        if (stat === undefined) continue;
        take(path, stat);
        if (stat.isDirectory()) {
          if (depth < maxDepth) holdFolder(toPath(`${folder}/${name}`), (below) => walk(below, `${path}/`, depth + 1));
          else uncounted ??= path;
        } else if (stat.isFile()) {
          if (draft.test(name) && stat.mtimeMs < draftsBeforeMs) remove(`${folder}/${name}`, path);
        } else if (!stat.isSymbolicLink()) {
          if (forGit && isReadByGit(path)) remove(`${folder}/${name}`, path);
          else if (special.length < maxNamed) special.push(path);
        }
      } catch (error) {
        if (isClosed(error)) uncounted ??= path;
        else if (!isGone(error)) throw error;
      }
    }
  };
  holdFolder(Buffer.from(root), (folder) => walk(folder, '', 0));
  const largest = [...tops].map(([path, size]) => ({ path, bytes: size })).concat(large.filter(({ path }) => path.includes('/')));
  return {
    bytes,
    files: Math.min(files, maxFiles),
    more: files > maxFiles,
    ...(uncounted !== undefined && { uncounted: toText(uncounted) }),
    largest: largest
      .toSorted((a, b) => b.bytes - a.bytes)
      .slice(0, largestFiles)
      .map((each) => ({ path: toText(each.path), bytes: each.bytes })),
    special: special.map(toText),
    removed: removed.map(toText),
  };
}

/** Files of git itself, in repositories inside the workspace or wherever a file `.git` points. */
function isReadByGit(path: Bytes): boolean {
  return path.split('/').some((name) => /^\.git/i.test(name)) || /(?:^|\/)(?:\.mailmap|HEAD|commondir|config|packed-refs)$/.test(path);
}
