import { access, readFile } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import { repeat } from '../timers.ts';

/** Checks whether the program on disk is still the one that runs. */
export interface BuildWatch extends Disposable {
  /** Another build is installed; the files of this one may still be there. */
  isReplaced(): boolean;
  /** Why parts of this program may fail to load; undefined while its files are there. */
  fault(): string | undefined;
}

/** Location of a build on disk. */
export interface BuildFiles {
  /** Identifies the build. */
  readonly stamp: URL;
  /** The running file, whose name no other build has. */
  readonly program: URL;
}

export interface BuildWatchDeps {
  /** Undefined when running from sources, which are not watched. */
  readonly files: BuildFiles | undefined;
  readonly clock: Clock;
  /** Called once. */
  readonly onReplaced: () => void;
  readonly onFault: (fault: string | undefined) => void;
}

const checkMs = 10_000;
const removed = 'The files of the program were removed or replaced under the running daemon: work in the background waits until it is restarted';

export function watchBuild({ files, clock, onReplaced, onFault }: BuildWatchDeps): BuildWatch {
  let running: string | undefined;
  let replaced = false;
  let fault: string | undefined;
  let disposed = false;

  async function check({ stamp, program }: BuildFiles): Promise<void> {
    const [found, isGone] = await Promise.all([readFile(stamp, 'utf8').catch(() => undefined), isMissing(program)]);
    if (disposed) return;
    running ??= found;
    if (!replaced && found !== undefined && found !== running) {
      replaced = true;
      onReplaced();
    }
    if (isGone === (fault !== undefined)) return;
    fault = isGone ? removed : undefined;
    onFault(fault);
  }

  const checks =
    files &&
    repeat({
      clock,
      everyMs: checkMs,
      firstMs: 0,
      run: () => check(files),
      onError(error) {
        throw error;
      },
    });
  return {
    isReplaced: () => replaced,
    fault: () => fault,
    [Symbol.dispose]() {
      disposed = true;
      void checks?.[Symbol.asyncDispose]();
    },
  };
}

function isMissing(file: URL): Promise<boolean> {
  return access(file).then(
    () => false,
    (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ENOENT',
  );
}

/** Returns the stamp that the build tool writes next to the bundle, and this file of the bundle. */
export function ownBuildFiles(): BuildFiles | undefined {
  return import.meta.url.endsWith('.ts') ? undefined : { stamp: new URL('./.sources', import.meta.url), program: new URL(import.meta.url) };
}
