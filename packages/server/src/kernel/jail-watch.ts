import { readFile } from 'node:fs/promises';
import type { Clock } from './clock.ts';
import type { JailBound, JailLimits } from './jail.ts';
import { sleep } from './timers.ts';

const everyMs = 100;
/** bubblewrap outside and inside. */
const ownProcesses = 2;

/** Checks a process and its descendants several times a second; reports, once, that they exceed a limit. */
export function watchGroup(
  { clock, pid, limits }: { readonly clock: Clock; readonly pid: number; readonly limits: Pick<JailLimits, 'memoryBytes' | 'processes'> },
  beyond: (which: JailBound) => void,
): { /** Stops looking, and waits until what was seen is gone. */ end(withinMs: number): Promise<void> } {
  let members: readonly number[] = [pid];
  let ended = false;
  let cancel = clock.after(everyMs, () => void check());
  async function check(): Promise<void> {
    const found = await membersOf(pid, limits.processes + ownProcesses);
    if (ended) return;
    members = found;
    if (found.length > limits.processes + ownProcesses) return beyond('processes');
    let bytes = 0;
    for (const member of found) bytes += await residentBytes(member);
    if (ended) return;
    if (bytes > limits.memoryBytes) return beyond('memory');
    cancel = clock.after(everyMs, () => void check());
  }
  return {
    async end(withinMs) {
      ended = true;
      cancel();
      const until = clock.monotonic() + withinMs;
      while (clock.monotonic() < until && (await Promise.all(members.map(isRunning))).includes(true)) await sleep(clock, 10);
    },
  };
}

/** Returns the process and its descendants, breadth first; stops one beyond `most`. */
async function membersOf(pid: number, most: number): Promise<number[]> {
  const members = [pid];
  for (let at = 0; at < members.length && members.length <= most; at += 1) {
    const text = await readFile(`/proc/${members[at]}/task/${members[at]}/children`, 'utf8').catch(() => '');
    members.push(
      ...text
        .split(' ')
        .filter((word) => word.trim() !== '')
        .map(Number),
    );
  }
  return members;
}

/** Resident private and shared memory; what several processes share counts for each. File pages are not counted: the kernel reclaims them. */
async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  let kibibytes = 0;
  for (const [, size] of status.matchAll(/^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm)) kibibytes += Number(size);
  return kibibytes * 1024;
}

/** Whether it runs: one that has exited stays listed until its parent reaps it. */
async function isRunning(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return text !== '' && !/\) [ZX] /.test(text);
}
