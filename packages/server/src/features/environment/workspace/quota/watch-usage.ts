import { statfs } from 'node:fs/promises';
import type { Clock } from '../../../../kernel/clock.ts';
import type { DiskWatch } from '../../../../kernel/disk-space.ts';
import type { JailBound } from '../../../../kernel/jail.ts';
import type { Log } from '../../../../kernel/log.ts';
import { sleep } from '../../../../kernel/timers.ts';
import type { Usage } from './count-files.ts';

interface WatchDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly disk: Pick<DiskWatch, 'check' | 'shortage'>;
  readonly count: (workspaceDir: string) => Promise<Usage>;
  /** Whether a workspace would exceed its limits with so much more in it. */
  readonly isFull: (wanted: { readonly usage: Usage; readonly bytes: number; readonly files: number }) => boolean;
}

interface Counted {
  readonly usage: Usage;
  readonly free: Free;
  readonly atMs: number;
  readonly tookMs: number;
}

const checkMs = 500;
/** A workspace is counted when the disk has shrunk by the remaining capacity, and periodically, using at most 10 % of one processor. */
const countMs = 5000;
const pauseFactor = 9;

/** Checks a workspace while a command runs in it, until the signal; calls `beyond` once when a limit is exceeded. */
export async function watchUsage(deps: WatchDeps, workspaceDir: string, beyond: (bound: JailBound) => void, signal: AbortSignal): Promise<void> {
  const { clock, log, disk } = deps;
  let counted: Counted | undefined;

  async function exceeded(): Promise<JailBound | undefined> {
    await disk.check();
    if (disk.shortage() !== undefined) return 'disk';
    const free = await freeOf(workspaceDir);
    if (counted !== undefined && !mustCount(deps, counted, free)) return undefined;
    const begunMs = clock.monotonic();
    const usage = await deps.count(workspaceDir);
    const atMs = clock.monotonic();
    counted = { usage, free, atMs, tookMs: atMs - begunMs };
    return deps.isFull({ usage, bytes: 0, files: 0 }) ? 'workspace' : undefined;
  }

  while (!signal.aborted) {
    await sleep(clock, checkMs, signal);
    if (signal.aborted) return;
    const found = await exceeded().catch((error: unknown) => {
      log.warn({ workspaceDir, err: error }, 'Failed to count a workspace while a command runs in it');
      return undefined;
    });
    if (signal.aborted) return;
    if (found !== undefined) return beyond(found);
  }
}

/** Whether a count is due: at most what the disk has lost can have gone into this workspace. */
function mustCount({ clock, isFull }: WatchDeps, { usage, free: before, atMs, tookMs }: Counted, free: Free): boolean {
  const grown = { bytes: Math.max(0, before.bytes - free.bytes), files: Math.max(0, before.files - free.files) };
  return isFull({ usage, ...grown }) || clock.monotonic() - atMs > Math.max(countMs, tookMs * pauseFactor);
}

interface Free {
  readonly bytes: number;
  readonly files: number;
}

async function freeOf(folder: string): Promise<Free> {
  const { bfree, bsize, ffree } = await statfs(folder);
  return { bytes: bfree * bsize, files: ffree };
}
