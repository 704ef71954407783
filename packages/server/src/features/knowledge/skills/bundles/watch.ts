import { type FSWatcher, existsSync, watch } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';

/** Folders that are watched at once, over all agents; each costs the kernel a little. Further changes are noticed with the next watched one. */
const maxWatchers = 512;

type Hears = (file: string | null) => void;

/** Reports changes in the folders of skills; for a missing folder it watches the nearest existing parent. */
export interface SkillWatch extends Disposable {
  /** Watches a folder of skills and the skills in it; call it again after each scan, with its results. `changed` is called after a quiet period. */
  keep(dir: string, names: readonly string[], changed: () => void): void;
  drop(dir: string): void;
}

export function createSkillWatch({ clock, log, debounceMs }: { readonly clock: Clock; readonly log: Log; readonly debounceMs: number }): SkillWatch {
  const watchers = new Map<string, { readonly watcher: FSWatcher; readonly heard: Map<string, Hears> }>();
  const kept = new Map<string, { paths: ReadonlySet<string>; cancel: (() => void) | undefined }>();

  function close(path: string, dir: string): void {
    const one = watchers.get(path);
    one?.heard.delete(dir);
    if (one === undefined || one.heard.size > 0) return;
    watchers.delete(path);
    one.watcher.close();
  }

  function open(path: string, dir: string, hears: Hears): boolean {
    const one = watchers.get(path);
    if (one !== undefined) {
      const known = one.heard.has(dir);
      one.heard.set(dir, hears);
      return !known;
    }
    if (watchers.size >= maxWatchers) return false;
    try {
      const heard = new Map([[dir, hears]]);
      const notify = (file: string | null) => {
        for (const each of heard.values()) each(file);
      };
      const watcher = watch(path, { persistent: false }, (_kind, file) => notify(file));
      watcher.on('error', () => {
        watchers.delete(path);
        watcher.close();
        notify(null);
      });
      watchers.set(path, { watcher, heard });
      return true;
    } catch (error) {
      log.debug({ err: error, path }, 'Failed to watch a folder of skills');
      return false;
    }
  }

  return {
    keep(dir, names, changed) {
      const state = kept.get(dir) ?? { paths: new Set<string>(), cancel: undefined };
      kept.set(dir, state);
      const soon = () => {
        state.cancel?.();
        state.cancel = clock.after(debounceMs, () => {
          state.cancel = undefined;
          changed();
        });
      };
      const wanted = new Map<string, Hears>();
      if (existsSync(dir)) {
        wanted.set(dir, soon);
        for (const name of names) wanted.set(`${dir}/${name}`, soon);
      } else {
        let missing = dir;
        while (!existsSync(dirname(missing)) && dirname(missing) !== missing) missing = dirname(missing);
        // Its siblings change often, which does not matter.
        const awaited = basename(missing);
        wanted.set(dirname(missing), (file) => {
          if (file === null || file === awaited) soon();
        });
      }
      for (const path of state.paths) if (!wanted.has(path)) close(path, dir);
      let opened = false;
      for (const [path, hears] of wanted) opened = open(path, dir, hears) || opened;
      state.paths = new Set(wanted.keys());
      // Something may have changed between the scan and the watch.
      if (opened) soon();
    },
    drop(dir) {
      const state = kept.get(dir);
      state?.cancel?.();
      for (const path of state?.paths ?? []) close(path, dir);
      kept.delete(dir);
    },
    [Symbol.dispose]() {
      for (const { cancel } of kept.values()) cancel?.();
      kept.clear();
      for (const { watcher } of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

/** Location of a workspace's skills. */
export const skillsFolder = (workspaceDir: string): string => join(workspaceDir, 'skills');
