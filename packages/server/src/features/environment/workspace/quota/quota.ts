import { statfs } from 'node:fs/promises';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { DiskWatch } from '../../../../kernel/disk-space.ts';
import type { JailBound } from '../../../../kernel/jail.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { WorkspaceCapacity } from '../api.ts';
import type { WorkspacesConfig } from '../config.ts';
import type { Usage } from './count-files.ts';
import { createCounter } from './counter.ts';

export interface QuotaDeps {
  /** Processes live in real time, whatever clock the rest uses. */
  readonly clock: Clock;
  readonly log: Log;
  readonly config: WorkspacesConfig;
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
const lookMs = 500;
/** While a command runs, a workspace is counted when the disk has shrunk by the remaining capacity, and periodically, using at most 10 % of one processor. */
const countMs = 5000;
const pauseFactor = 9;
const draftAgeMs = 3_600_000;
const mebibyte = 1024 * 1024;

/** Counts the contents of workspaces in a thread, before writes and while commands run. */
export function createQuota({ clock, log, config, disk }: QuotaDeps): Quota {
  const counter = createCounter(clock);
  const known = new Map<string, Known>();
  const counting = new Map<string, Promise<Usage>>();
  /** Running commands, by workspace. */
  const running = new Map<string, number>();
  const quotaBytes = config.quotaMb * mebibyte;

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
    const usage = await counter.count({ root: workspaceDir, maxFiles: config.quotaFiles, draftsBeforeMs, forGit });
    known.set(workspaceDir, { usage, atMs: clock.monotonic(), bytes: 0, files: 0 });
    if (usage.removed.length > 0)
      log.warn({ workspaceDir, files: usage.removed.slice(0, 5) }, 'Removed drafts left by a crash, or special files that git would read');
    return usage;
  }

  const isOver = ({ usage, bytes, files }: Omit<Known, 'atMs'>) =>
    usage.more || usage.uncounted !== undefined || usage.bytes + bytes > quotaBytes || usage.files + files > config.quotaFiles;

  async function assertCapacity(workspaceDir: string, { bytes = 0, files = 0 } = {}): Promise<void> {
    await disk.check();
    disk.assertCanWrite();
    let now = known.get(workspaceDir);
    const wanted = (held: Known) => ({ usage: held.usage, bytes: held.bytes + bytes, files: held.files + files });
    if (now === undefined || running.has(workspaceDir) || clock.monotonic() - now.atMs > freshMs || isOver(wanted(now))) {
      await count(workspaceDir);
      now = known.get(workspaceDir);
    }
    if (now === undefined) return;
    if (isOver(wanted(now))) throw new AppError('precondition_failed', describeFull(now.usage, bytes, config));
    now.bytes += bytes;
    now.files += files;
  }

  /** Checks repeatedly until it is disposed of; reports once when the limit is exceeded. */
  function watch(workspaceDir: string, beyond: (bound: JailBound) => void): Disposable {
    let ended = false;
    let counted: { readonly usage: Usage; readonly free: Free; readonly atMs: number; readonly tookMs: number } | undefined;
    let cancel = clock.after(lookMs, () => void look());

    /** Whether a count is due: at most what the disk has lost can have gone into this workspace. */
    const mustCount = (free: Free): boolean => {
      if (counted === undefined) return true;
      const grown = { bytes: Math.max(0, counted.free.bytes - free.bytes), files: Math.max(0, counted.free.files - free.files) };
      return isOver({ usage: counted.usage, ...grown }) || clock.monotonic() - counted.atMs > Math.max(countMs, counted.tookMs * pauseFactor);
    };

    async function bound(): Promise<JailBound | undefined> {
      await disk.check();
      if (disk.shortage() !== undefined) return 'disk';
      const free = await freeOf(workspaceDir);
      if (!mustCount(free)) return undefined;
      const begunMs = clock.monotonic();
      const usage = await count(workspaceDir);
      const atMs = clock.monotonic();
      counted = { usage, free, atMs, tookMs: atMs - begunMs };
      return isOver({ usage, bytes: 0, files: 0 }) ? 'workspace' : undefined;
    }

    async function look(): Promise<void> {
      const found = await bound().catch((error: unknown) => {
        log.warn({ workspaceDir, err: error }, 'Failed to count a workspace while a command runs in it');
        return undefined;
      });
      if (ended) return;
      if (found !== undefined) return beyond(found);
      cancel = clock.after(lookMs, () => void look());
    }
    return {
      [Symbol.dispose]() {
        ended = true;
        cancel();
      },
    };
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
        const watching = watch(workspaceDir, (which) => {
          bound = which;
          started.kill();
        });
        const ended = started.ended.then((end) => {
          watching[Symbol.dispose]();
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

interface Free {
  readonly bytes: number;
  readonly files: number;
}

async function freeOf(folder: string): Promise<Free> {
  const { bfree, bsize, ffree } = await statfs(folder);
  return { bytes: bfree * bsize, files: ffree };
}

const toMebibytes = (bytes: number) => (bytes / mebibyte).toFixed(1);
const help =
  'Delete what is not needed: the programs "rm" and "chmod" still run (argv such as ["rm", "-r", "data/old"], without a shell), and so do patches that only delete and workspace.deleteFile.';
