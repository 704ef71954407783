import type { Live } from '../../../../kernel/config/live.ts';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { DiskWatch } from '../../../../kernel/disk-space.ts';
import type { JailBound } from '../../../../kernel/jail.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { WorkspaceCapacity } from '../api.ts';
import type { WorkspacesConfig } from '../config.ts';
import type { Usage } from './count-files.ts';
import { createCounter } from './counter.ts';
import { watchUsage } from './watch-usage.ts';

export interface QuotaDeps {
  /** Processes live in real time, whatever clock the rest uses. */
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Live<WorkspacesConfig>;
  readonly disk: Omit<DiskWatch, keyof Disposable>;
}

export interface Quota extends WorkspaceCapacity, AsyncDisposable {
  /** Removes special files with names that git opens, and reports those that remain. */
  clearForGit(workspaceDir: string): Promise<Pick<Usage, 'special'>>;
}

interface Known {
  usage: Usage;
  atMs: number;
  /** Written through the daemon since the last count. */
  bytes: number;
  files: number;
}

const freshMs = 10_000;
const draftAgeMs = 3_600_000;
const mebibyte = 1024 * 1024;

/** Counts the contents of workspaces in a thread, before writes and while commands run. */
export function createQuota({ clock, log, config, disk }: QuotaDeps): Quota {
  const counter = createCounter(clock);
  const known = new Map<string, Known>();
  const counting = new Map<string, Promise<Usage>>();
  /** Running commands, by workspace. */
  const running = new Map<string, number>();

  /** Concurrent callers share one count. */
  function count(workspaceDir: string): Promise<Usage> {
    const under = counting.get(workspaceDir);
    if (under !== undefined) return under;
    const started = countNow(workspaceDir).finally(() => counting.delete(workspaceDir));
    counting.set(workspaceDir, started);
    return started;
  }

  async function countNow(workspaceDir: string, forGit = false): Promise<Usage> {
    const draftsBeforeMs = clock.ageNow() - draftAgeMs;
    const usage = await counter.count({ root: workspaceDir, maxFiles: config.current.quotaFiles, draftsBeforeMs, forGit });
    known.set(workspaceDir, { usage, atMs: clock.monotonic(), bytes: 0, files: 0 });
    if (usage.removed.length > 0)
      log.warn({ workspaceDir, files: usage.removed.slice(0, 5) }, 'Removed drafts left by a crash, or special files that git would read');
    return usage;
  }

  function isFull({ usage, bytes, files }: Omit<Known, 'atMs'>): boolean {
    const { quotaMb, quotaFiles } = config.current;
    return usage.more || usage.uncounted !== undefined || usage.bytes + bytes > quotaMb * mebibyte || usage.files + files > quotaFiles;
  }

  async function assertCapacity(workspaceDir: string, { bytes = 0, files = 0 } = {}): Promise<void> {
    await disk.check();
    disk.assertCanWrite();
    let now = known.get(workspaceDir);
    const wanted = (held: Known) => ({ usage: held.usage, bytes: held.bytes + bytes, files: held.files + files });
    if (now === undefined || running.has(workspaceDir) || clock.monotonic() - now.atMs > freshMs || isFull(wanted(now))) {
      await count(workspaceDir);
      now = known.get(workspaceDir);
    }
    if (now === undefined) return;
    if (isFull(wanted(now))) throw new AppError('precondition_failed', describeFull(now.usage, bytes, config.current));
    now.bytes += bytes;
    now.files += files;
  }

  return {
    clearForGit: (workspaceDir) => countNow(workspaceDir, true),
    assertCapacity,
    watched: (jail, workspaceDir) => ({
      ...jail,
      run(spec) {
        const started = jail.run(spec);
        let bound: JailBound | undefined;
        running.set(workspaceDir, (running.get(workspaceDir) ?? 0) + 1);
        const isOver = new AbortController();
        const beyond = (which: JailBound) => {
          bound = which;
          started.kill();
        };
        void watchUsage({ clock, log, disk, count, isFull }, workspaceDir, beyond, isOver.signal);
        const ended = started.ended.then((end) => {
          isOver.abort();
          const left = (running.get(workspaceDir) ?? 1) - 1;
          if (left > 0) running.set(workspaceDir, left);
          else running.delete(workspaceDir);
          known.delete(workspaceDir);
          return bound === undefined ? end : { ...end, bound };
        });
        return { ...started, ended };
      },
    }),
    async [Symbol.asyncDispose]() {
      await counter[Symbol.asyncDispose]();
    },
  };
}

function describeFull({ bytes, files, more, uncounted, largest }: Usage, wanted: number, { quotaMb, quotaFiles }: WorkspacesConfig): string {
  if (uncounted !== undefined)
    return `The workspace cannot be counted: the folder ${JSON.stringify(uncounted.slice(-200))} is closed to the daemon or nested too deeply. ${help}`;
  const most = largest.map(({ path, bytes: size }) => `${JSON.stringify(path.slice(-200))} ${toMebibytes(size)} MiB`).join(', ');
  return `The workspace is full: it holds ${toMebibytes(bytes)} MiB in ${more ? 'more than ' : ''}${files} files${wanted === 0 ? '' : `, and ${wanted} bytes more are wanted`}; workspaces.quotaMb is ${quotaMb}, workspaces.quotaFiles ${quotaFiles}. Most of it: ${most}. ${help}`;
}

const toMebibytes = (bytes: number) => (bytes / mebibyte).toFixed(1);
const help =
  'Delete what is not needed: the programs "rm" and "chmod" still run (argv such as ["rm", "-r", "data/old"], without a shell), and so do patches that only delete and workspace.deleteFile.';
