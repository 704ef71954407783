import { readdirSync, readFileSync } from 'node:fs';

/** Variable in the environment of each program that works on files for the daemon with this pid: they are found after its death. */
export const daemonVariable = 'GATEHOUSE_DAEMON_PID';

interface Found {
  readonly pid: number;
  readonly parent: number;
}

/** Kills every descendant of a process except this one; returns how many there were. */
export function killDescendants(ancestor: number): number {
  const all = listProcesses();
  const family = new Set([ancestor]);
  // Parents may be listed after their children.
  for (let size = 0; size !== family.size;) {
    size = family.size;
    for (const { pid, parent } of all) if (family.has(parent) && pid !== process.pid) family.add(pid);
  }
  family.delete(ancestor);
  return killAll([...family]);
}

/** Kills the programs that a dead daemon started and that carry its `daemonVariable`; returns how many there were. */
export function killLeftBehind(daemonPid: number): number {
  const entry = `${daemonVariable}=${daemonPid}`;
  return killAll(
    listProcesses()
      .map(({ pid }) => pid)
      .filter((pid) => pid !== process.pid && readProc(pid, 'environ').split('\0').includes(entry)),
  );
}

function killAll(pids: readonly number[]): number {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone meanwhile.
    }
  }
  return pids.length;
}

/** Returns the running processes; one that has exited stays listed by the system until its parent reaps it. */
function listProcesses(): Found[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    // The second field is the program's name in brackets and may itself hold brackets.
    const stat = readProc(pid, 'stat');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === undefined || state === '' || state === 'Z' || state === 'X' ? [] : [{ pid, parent: Number(parent) }];
  });
}

function readProc(pid: number, file: 'stat' | 'environ'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
