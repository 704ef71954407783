import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from '../clock.ts';
import { repeat } from '../timers.ts';
import { watchFolder } from '../watch-folder.ts';

export interface ConfigWatchDeps {
  readonly file: string;
  readonly clock: Clock;
  /** Called when the file may have changed: it is another one, or has another size or time. */
  readonly onChange: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** An editor writes a file in several steps: changes within this time are read as one. */
const settleMs = 300;
/** Finds changes without a notice. */
const checkMs = 60_000;

/** Notices that a configuration file was changed by hand: one handle on its folder, and one `stat` each minute. */
export function watchConfig({ file, clock, onChange, onError }: ConfigWatchDeps): AsyncDisposable {
  let seen: string | undefined;
  let cancelSettle = () => {};

  async function check(): Promise<void> {
    const found = await stat(file).then(
      ({ ino, size, mtimeMs }) => `${ino} ${size} ${mtimeMs}`,
      // A file that is gone is a change, too.
      () => 'missing',
    );
    if (found === seen) return;
    seen = found;
    await onChange();
  }

  const watching = watchFolder(dirname(file), (name) => {
    if (name !== null && name !== basename(file)) return;
    cancelSettle();
    cancelSettle = clock.after(settleMs, () => void check().catch(onError));
  });
  const checks = repeat({ clock, everyMs: checkMs, run: check, onError });
  return {
    async [Symbol.asyncDispose]() {
      cancelSettle();
      watching[Symbol.dispose]();
      await checks[Symbol.asyncDispose]();
    },
  };
}
