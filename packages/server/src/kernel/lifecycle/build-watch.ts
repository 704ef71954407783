import { readFile } from 'node:fs/promises';
import type { Clock } from '../clock.ts';

/** Looks whether the program on disk is still the one that runs. */
export interface BuildWatch extends Disposable {
  isReplaced(): boolean;
}

const lookMs = 60_000;

/** `stampFile` names the build; onReplaced is called once. Sources have none, and are not watched. */
export function watchBuild(deps: { readonly stampFile: URL | undefined; readonly clock: Clock; readonly onReplaced: () => void }): BuildWatch {
  const { stampFile, clock, onReplaced } = deps;
  let running: string | undefined;
  let replaced = false;
  let disposed = false;
  let cancel = () => {};

  async function look(): Promise<void> {
    if (stampFile === undefined || disposed) return;
    const found = await readFile(stampFile, 'utf8').catch(() => undefined);
    running ??= found;
    if (running !== undefined && found !== running) {
      replaced = true;
      onReplaced();
    } else if (!disposed) cancel = clock.after(lookMs, () => void look());
  }

  void look();
  return {
    isReplaced: () => replaced,
    [Symbol.dispose]() {
      disposed = true;
      cancel();
    },
  };
}

/** The stamp that the build tool writes next to the bundle. */
export function ownStampFile(): URL | undefined {
  return import.meta.url.endsWith('.ts') ? undefined : new URL('./.sources', import.meta.url);
}
