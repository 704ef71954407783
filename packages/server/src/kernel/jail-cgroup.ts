import { access, constants, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import type { Clock } from './clock.ts';
import type { JailBound, JailLimits } from './jail.ts';
import { sleep } from './timers.ts';

/** A separate group for each jailed program, created by the process itself before it becomes the program, so that nothing it starts can escape. */
export interface Cgroups {
  /** Returns shell lines that create the groups, set the limits and join, or exit with 125. */
  joining(limits: JailLimits): string;
  /** Returns which limit the process's group hit. */
  hit(pid: number): Promise<JailBound | undefined>;
  /** Kills what is left in the process's groups and removes them. */
  remove(pid: number, bounds: { readonly clock: Clock; readonly withinMs: number }): Promise<void>;
}

interface Layout {
  /** Folders in which groups are created, one per controller, or one for both. */
  readonly pids: string;
  readonly memory: string;
  readonly version: 1 | 2;
}

const pauseMs = 10;

/** Opens the groups of this machine; undefined when this process may not create any. */
export async function openCgroups(): Promise<Cgroups | undefined> {
  const layout = await findLayout();
  if (layout === undefined) return undefined;
  await removeLeftBehind(layout);
  return createCgroups(layout);
}

export function createCgroups(layout: Layout): Cgroups {
  const prefix = `gatehouse-${process.pid}-`;
  const folders = [...new Set([layout.pids, layout.memory])];
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  return {
    joining({ memoryBytes, processes }) {
      // bubblewrap itself is two processes.
      const pids = processes + 2;
      const enter = (folder: string, settings: readonly string[]) =>
        [`g=${quoted(`${folder}/${prefix}`)}$$; [ -d "$g" ] || mkdir "$g" || exit 125`, ...settings, 'echo $$ >"$g/cgroup.procs" || exit 125'].join(
          '\n',
        );
      const set = (file: string, value: number) => `echo ${value} >"$g/${file}" || exit 125`;
      const maySet = (file: string, value: number) => `[ ! -f "$g/${file}" ] || echo ${value} >"$g/${file}" || exit 125`;
      if (layout.version === 2) return enter(layout.pids, [set('pids.max', pids), set('memory.max', memoryBytes), maySet('memory.swap.max', 0)]);
      return [
        enter(layout.pids, [set('pids.max', pids)]),
        enter(layout.memory, [set('memory.limit_in_bytes', memoryBytes), maySet('memory.memsw.limit_in_bytes', memoryBytes)]),
      ].join('\n');
    },
    async hit(pid) {
      const [events, memory] = await Promise.all([
        readCount(`${layout.pids}/${prefix}${pid}/pids.events`, 'max'),
        readCount(`${layout.memory}/${prefix}${pid}/${layout.version === 2 ? 'memory.events' : 'memory.oom_control'}`, 'oom_kill'),
      ]);
      return memory > 0 ? 'memory' : events > 0 ? 'processes' : undefined;
    },
    async remove(pid, { clock, withinMs }) {
      const until = clock.monotonic() + withinMs;
      for (const folder of folders)
        while (!(await removeGroup(`${folder}/${prefix}${pid}`)) && clock.monotonic() < until) await sleep(clock, pauseMs);
    },
  };
}

/** Kills its processes; true when the group is gone. */
async function removeGroup(folder: string): Promise<boolean> {
  const processes = await readFile(`${folder}/cgroup.procs`, 'utf8').catch(() => '');
  for (const pid of processes.split('\n').filter((line) => line !== '')) killQuietly(Number(pid));
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT';
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone meanwhile.
  }
}

async function readCount(file: string, name: string): Promise<number> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

async function findLayout(): Promise<Layout | undefined> {
  const [own, mounts] = await Promise.all([readFile('/proc/self/cgroup', 'utf8'), readFile('/proc/self/mounts', 'utf8')]);
  const mounted = mounts.split('\n').map((line) => line.split(' '));
  const base = async (kind: string, controller: string | undefined) => {
    const mount = mounted.find(
      (fields) => fields[2] === kind && (controller === undefined || fields[3]?.split(',').includes(controller) === true),
    )?.[1];
    const path = own
      .split('\n')
      .map((line) => line.split(':'))
      .find(([, names]) => (controller === undefined ? names === '' : names?.split(',').includes(controller) === true))?.[2];
    if (mount === undefined || path === undefined) return undefined;
    // In a container the path may be one of the host that is not visible here.
    for (const folder of [`${mount}${path === '/' ? '' : path}`, mount]) {
      const usable = await access(folder, constants.W_OK).then(
        () => true,
        () => false,
      );
      if (usable) return folder;
    }
    return undefined;
  };
  const [pids, memory, unified] = await Promise.all([base('cgroup', 'pids'), base('cgroup', 'memory'), base('cgroup2', undefined)]);
  if (pids !== undefined && memory !== undefined)
    return (await canMake(pids, 'pids.max')) && (await canMake(memory, 'memory.limit_in_bytes')) ? { pids, memory, version: 1 } : undefined;
  if (unified === undefined || !(await handDown(unified))) return undefined;
  return (await canMake(unified, 'memory.max')) ? { pids: unified, memory: unified, version: 2 } : undefined;
}

/** Enables both controllers for the groups below. The kernel refuses while the group itself holds processes, unless it is the root. */
async function handDown(folder: string): Promise<boolean> {
  const names = (text: string) => text.trim().split(' ');
  const has = async (file: string) => {
    const found = names(await readFile(`${folder}/${file}`, 'utf8').catch(() => ''));
    return found.includes('memory') && found.includes('pids');
  };
  if (await has('cgroup.subtree_control')) return true;
  if (!(await has('cgroup.controllers'))) return false;
  await writeFile(`${folder}/cgroup.subtree_control`, '+memory +pids').catch(() => {});
  return has('cgroup.subtree_control');
}

async function canMake(folder: string, setting: string): Promise<boolean> {
  const trial = `${folder}/gatehouse-${process.pid}-0`;
  try {
    await mkdir(trial);
    await access(`${trial}/${setting}`, constants.W_OK);
    return true;
  } catch {
    return false;
  } finally {
    await rmdir(trial).catch(() => {});
  }
}

/** Removes groups of daemons that were killed: their processes died with them. */
async function removeLeftBehind({ pids, memory }: Layout): Promise<void> {
  for (const folder of new Set([pids, memory])) {
    for (const name of await readdir(folder).catch(() => [])) {
      const owner = /^gatehouse-(\d+)-\d+$/.exec(name)?.[1];
      if (owner !== undefined && !isAlive(Number(owner))) await rmdir(`${folder}/${name}`).catch(() => {});
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
