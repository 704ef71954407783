import { watch } from 'node:fs';

/**
 * Calls `onNotice` with the name of each entry of a folder that changes, null where the system names none. Notices may be missing: of
 * links to other folders, on network file systems, and where the system has no notifications at all.
 */
export function watchFolder(folder: string, onNotice: (name: string | null) => void): Disposable {
  try {
    const watcher = watch(folder, { persistent: false }, (_kind, name) => onNotice(name));
    watcher.on('error', () => watcher.close());
    return { [Symbol.dispose]: () => watcher.close() };
  } catch {
    return { [Symbol.dispose]() {} };
  }
}
