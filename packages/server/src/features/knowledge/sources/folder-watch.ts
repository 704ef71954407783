import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';

/** Folders that may be watched further, over all sources. Each costs the kernel about a kilobyte; systems other than Linux need a descriptor. */
export interface WatchBudget {
  left: number;
}
export const createWatchBudget = (left = process.platform === 'linux' ? 4_096 : 256): WatchBudget => ({ left });

/** Folders that are watched before others get a turn: each is a call of the system. */
const atOnce = 64;

/**
 * Watches the folder of a source and those below it. Notices may be missing (network file systems, folders beyond the limit): comparisons
 * at intervals find what they would have reported.
 */
export class FolderWatch implements Disposable {
  readonly #root: string;
  readonly #budget: WatchBudget;
  readonly #onNotice: () => void;
  /** Watchers by path below the root, which is the empty path. */
  readonly #watchers = new Map<string, FSWatcher>();
  #rootId = '';
  #isOver = false;

  constructor(root: string, budget: WatchBudget, onNotice: () => void) {
    this.#root = root;
    this.#budget = budget;
    this.#onNotice = onNotice;
    // What happens before the first scan is noticed as well.
    this.#open('');
  }

  /** Watches exactly these folders, those nearest to the root first. Changes of a folder that was just opened may have been missed by the scan. */
  async keep(folders: readonly string[]): Promise<{ readonly opened: number; readonly unwatched: number }> {
    const rootId = await stat(this.#root).then(
      ({ ino, dev }) => `${dev} ${ino}`,
      () => '',
    );
    // Another folder has this name by now: a disk that was mounted, a folder that was replaced.
    if (this.#rootId !== '' && this.#rootId !== rootId) this.#closeBelow('');
    this.#rootId = rootId;
    const wanted = new Set(['', ...folders]);
    for (const path of this.#watchers.keys()) if (!wanted.has(path)) this.#close(path);
    const missing = [...wanted].filter((path) => !this.#watchers.has(path)).toSorted((a, b) => depthOf(a) - depthOf(b));
    let opened = 0;
    for (const [at, path] of missing.entries()) {
      if (this.#isOver || !this.#open(path)) break;
      opened += 1;
      if (at % atOnce === atOnce - 1) await setImmediate();
    }
    return { opened, unwatched: missing.length - opened };
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#closeBelow('');
  }

  /** Returns whether further ones could be watched as well. */
  #open(path: string): boolean {
    if (this.#budget.left <= 0) return false;
    try {
      const watcher = watch(path === '' ? this.#root : `${this.#root}/${path}`, { persistent: false }, (kind, name) => {
        // A folder that was moved keeps its watch under its old name, where another one may be by now.
        if (kind === 'rename' && name !== null) this.#closeBelow(path === '' ? name : `${path}/${name}`);
        this.#onNotice();
      });
      watcher.on('error', () => this.#close(path));
      this.#watchers.set(path, watcher);
      this.#budget.left -= 1;
      return true;
    } catch (error) {
      // Gone by now, which the next scan finds. Otherwise the system allows no more.
      return error instanceof Error && 'code' in error && error.code === 'ENOENT';
    }
  }

  #closeBelow(path: string): void {
    if (path !== '' && !this.#watchers.has(path)) return;
    for (const one of this.#watchers.keys()) if (path === '' || one === path || one.startsWith(`${path}/`)) this.#close(one);
  }

  #close(path: string): void {
    const watcher = this.#watchers.get(path);
    if (watcher === undefined) return;
    this.#watchers.delete(path);
    this.#budget.left += 1;
    watcher.close();
  }
}

const depthOf = (path: string): number => (path === '' ? 0 : path.split('/').length);
