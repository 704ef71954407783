import { createHash, hash } from 'node:crypto';
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { holdFolder, isClosed, isGone } from './hold-folder.ts';

export interface TreeRequest {
  readonly root: string;
  /** Names directly in `root` that are left out. */
  readonly without: readonly string[];
}

/** `refused`: which entry cannot be compared, and why. */
export type TreeAnswer = { readonly digest: string } | { readonly refused: string };

const maxEntries = 300_000;
/** Each level holds an open descriptor. */
const maxDepth = 100;
/** Larger files, and all once this much is read, count by inode, size and times: programs cannot set the change time back. */
const maxFileBytes = 1024 * 1024;
const maxReadBytes = 64 * 1024 * 1024;

class Refusal extends Error {}

/**
 * Digests everything that a program could read in a folder: names, modes, targets of links, contents. Equal digests mean that nothing
 * changed; a file that was rewritten with the same content counts as unchanged. It blocks, so run it in a separate thread.
 */
export function digestTree({ root, without }: TreeRequest): TreeAnswer {
  const digest = createHash('sha256');
  let entries = 0;
  let readBytes = 0;

  function contentOf(at: Buffer, stat: Stats): string {
    const known = () => `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
    if (stat.size > maxFileBytes || readBytes + stat.size > maxReadBytes) return known();
    let opened: number;
    try {
      opened = openSync(at, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    } catch (error) {
      if (isClosed(error)) return known();
      throw error;
    }
    try {
      // The file may grow meanwhile.
      if (fstatSync(opened).size > maxFileBytes) return known();
      const bytes = readFileSync(opened);
      readBytes += bytes.length;
      return hash('sha256', bytes, 'hex');
    } finally {
      closeSync(opened);
    }
  }

  /** Names are bytes, one per character. */
  function walk(folder: string, inside: string, depth: number): void {
    for (const name of readdirSync(Buffer.from(folder, 'latin1'), 'latin1').toSorted()) {
      if (inside === '' && without.includes(name)) continue;
      entries += 1;
      if (entries > maxEntries) throw new Refusal(`it holds more than ${maxEntries} files`);
      const path = `${inside}${name}`;
      const at = Buffer.from(`${folder}/${name}`, 'latin1');
      try {
        const stat = lstatSync(at);
        digest.update(`${path}\0${stat.mode.toString(8)}\0`);
        if (stat.isDirectory()) {
          if (depth === maxDepth) throw new Refusal(`${shown(path)} is nested too deeply`);
          holdFolder(at, (below) => walk(below, `${path}/`, depth + 1));
        } else if (stat.isFile()) digest.update(contentOf(at, stat));
        else if (stat.isSymbolicLink()) digest.update(readlinkSync(at, 'buffer'));
        else if (!stat.isSocket()) throw new Refusal(`${shown(path)} is a pipe or a device`);
      } catch (error) {
        if (isClosed(error)) throw new Refusal(`${shown(path)} is closed to the daemon`);
        if (!isGone(error)) throw error;
      }
      digest.update('\0');
    }
  }

  try {
    holdFolder(Buffer.from(root), (folder) => walk(folder, '', 0));
    return { digest: digest.digest('hex') };
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.message };
    throw error;
  }
}

const shown = (path: string) => JSON.stringify(Buffer.from(path, 'latin1').toString('utf8').slice(-200));
