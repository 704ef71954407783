import { access, readFile } from 'node:fs/promises';
import type { Clock } from '../clock.ts';

/** Looks whether the program on disk is still the one that runs. */
export interface BuildWatch extends Disposable {
  /** Another build is installed; the parts of this one may still be there. */
  isReplaced(): boolean;
  /** Why parts of this program may fail to load; undefined while its files are there. */
  fault(): string | undefined;
}

/** Where a build is found on disk. */
export interface BuildFiles {
  /** Names the build. */
  readonly stamp: URL;
  /** The file that runs, whose name no other build has. */
  readonly program: URL;
}

export interface BuildWatchDeps {
  /** Sources have none, and are not watched. */
  readonly files: BuildFiles | undefined;
  readonly clock: Clock;
  /** Called once. */
  readonly onReplaced: () => void;
  readonly onFault: (fault: string | undefined) => void;
}

const lookMs = 10_000;
const removed = 'The files of the program were removed or replaced under the running daemon: work in the background waits until it is restarted';

export function watchBuild({ files, clock, onReplaced, onFault }: BuildWatchDeps): BuildWatch {
  let running: string | undefined;
  let replaced = false;
  let fault: string | undefined;
  let disposed = false;
  let cancel = () => {};

  async function look({ stamp, program }: BuildFiles): Promise<void> {
    const [found, isGone] = await Promise.all([readFile(stamp, 'utf8').catch(() => undefined), isMissing(program)]);
    if (disposed) return;
    cancel = clock.after(lookMs, () => void look({ stamp, program }));
    running ??= found;
    if (!replaced && found !== undefined && found !== running) {
      replaced = true;
      onReplaced();
    }
    if (isGone === (fault !== undefined)) return;
    fault = isGone ? removed : undefined;
    onFault(fault);
  }

  if (files !== undefined) void look(files);
  return {
    isReplaced: () => replaced,
    fault: () => fault,
    [Symbol.dispose]() {
      disposed = true;
      cancel();
    },
  };
}

function isMissing(file: URL): Promise<boolean> {
  return access(file).then(
    () => false,
    (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ENOENT',
  );
}

/** The stamp that the build tool writes next to the bundle, and the part of the bundle that this is. */
export function ownBuildFiles(): BuildFiles | undefined {
  return import.meta.url.endsWith('.ts') ? undefined : { stamp: new URL('./.sources', import.meta.url), program: new URL(import.meta.url) };
}
