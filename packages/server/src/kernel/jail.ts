import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { release } from 'node:os';
import { type Readable, Writable } from 'node:stream';
import { AppError } from './app-error.ts';
import type { Clock } from './clock.ts';
import { type FindProgram, findProgram } from './find-program.ts';
import { type HostFolders, bubblewrapArguments, jailScript, pipes, toArgumentBytes } from './jail-arguments.ts';
import { type Cgroups, openCgroups } from './jail-cgroup.ts';
import { explainRefusal } from './jail-refusal.ts';
import { seccompFilter } from './jail-seccomp.ts';
import { daemonVariable } from './lifecycle/kill-processes.ts';
import type { Log } from './log.ts';
import { watchGroup } from './jail-watch.ts';

/** A file or folder of the host, by real path, and its path inside. Later mounts hide earlier ones. */
export interface JailMount {
  readonly from: string;
  readonly to: string;
  readonly writable: boolean;
}

export interface JailLimits {
  /** Limit for all processes together, including what they write below /tmp. */
  readonly memoryBytes: number;
  /** Processes and threads together. */
  readonly processes: number;
  /** Limit per process. */
  readonly cpuSeconds: number;
  /** Limit per file, and for /tmp and the home folder as a whole. */
  readonly fileBytes: number;
  /** Limit per process. */
  readonly openFiles: number;
}

export interface JailSpec {
  /** Program and arguments, not interpreted by a shell. The program is found on the PATH of `env`. */
  readonly argv: readonly [string, ...string[]];
  /** Path inside. */
  readonly cwd: string;
  readonly mounts: readonly JailMount[];
  /** Folders below a mount that appear empty inside. */
  readonly masked?: readonly string[];
  /** The whole environment: nothing of the daemon's is visible inside. */
  readonly env: Readonly<Record<string, string>>;
  readonly network: boolean;
  readonly limits: JailLimits;
}

/** Which limit of the whole group stopped it or one of its processes; the last two concern where it writes. */
export type JailBound = 'memory' | 'processes' | 'workspace' | 'disk';

export interface JailEnd {
  readonly code: number | null;
  /** Such as SIGKILL. */
  readonly signal: string | null;
  readonly bound?: JailBound;
}

export interface JailedProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves, never rejects, when it and everything it started are gone. */
  readonly ended: Promise<JailEnd>;
  /** Kills it at once, with everything it started. */
  kill(): void;
}

/** Programs that run in it see their mounts, the system's programs and nothing else, and exit with the daemon. */
export interface Jail extends AsyncDisposable {
  /** Why no jail is available here, and what helps; undefined when one is. */
  readonly unavailable: string | undefined;
  /** How `memoryBytes` and `processes` are enforced: by the kernel, or by limits per process and a watcher that checks several times a second. */
  readonly bounds: 'cgroup' | 'rlimits';
  /** Starts a program. Fails with `unavailable` without a jail: nothing is ever run outside. */
  run(spec: JailSpec): JailedProcess;
}

/** Folders on the PATH inside; `node` is the one that runs the daemon. */
export const jailPath = '/opt/gatehouse/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';
/** An empty writable folder in memory. */
export const jailHome = '/home/agent';

const install = 'install bubblewrap (Debian, Ubuntu, Fedora, Arch: package "bubblewrap") and util-linux on Linux';
const probeLimits: JailLimits = { memoryBytes: 128 * 1024 * 1024, processes: 16, cpuSeconds: 5, fileBytes: 1024 * 1024, openFiles: 64 };
const probeMs = 15_000;
/** Address space that JIT runtimes reserve without using it. */
const reservedBytes = 1024 * 1024 * 1024;
/** Since Linux 5.14 processes are counted per user namespace; before, those of the user outside count too, and nothing could be started. */
const countsPerNamespace = (([major = 0, minor = 0]) => major > 5 || (major === 5 && minor >= 14))(release().split('.').map(Number.parseFloat));
/** How long a killed process may take to disappear. */
const goneMs = 2000;

/** Determines, by running a program in it, whether a jail works on this machine. Throws `unavailable` when no program can be started now. */
export async function openJail({ log, ...options }: OpenJail & { readonly log?: Log }): Promise<Jail> {
  const jail = await findJail(options);
  if (jail.unavailable === undefined) log?.info({ bounds: jail.bounds }, 'Commands are jailed');
  else log?.warn({ reason: jail.unavailable }, 'Commands are refused: there is no jail');
  return jail;
}

interface OpenJail {
  readonly clock: Clock;
  /** Finds programs of the host. */
  readonly find?: FindProgram;
  /** Undefined when no control groups can be used. */
  readonly cgroups?: () => Promise<Cgroups | undefined>;
}

async function findJail({ clock, find = findProgram, cgroups = openCgroups }: OpenJail): Promise<Jail> {
  const [bubblewrap, prlimit] = [find('bwrap'), find('prlimit')];
  if (process.platform !== 'linux' || bubblewrap === undefined || prlimit === undefined) {
    const missing = [bubblewrap === undefined ? 'bwrap' : [], prlimit === undefined ? 'prlimit' : []].flat().join(' and ');
    return noJail(`${process.platform === 'linux' ? `${missing} not found` : `there is no jail for ${process.platform}`}: ${install}`);
  }
  const filter = seccompFilter(process.arch);
  if (filter === undefined) return noJail(`there is no filter of system calls for ${process.arch}: run on x86_64 or aarch64`);
  const groups = await cgroups().catch(() => undefined);
  const host = { bubblewrap, prlimit, filter, folders: await listHostFolders(), cgroups: groups, clock };
  // Versions before 0.8 cannot forbid user namespaces inside.
  let unavailable: string | undefined;
  for (const nestedNamespaces of [false, true]) {
    const jail = createJail({ ...host, nestedNamespaces });
    unavailable = await probe(jail, clock);
    if (unavailable === undefined) return jail;
    await jail[Symbol.asyncDispose]();
  }
  return noJail(`bubblewrap cannot make a jail here (${unavailable}). ${await explainRefusal(unavailable ?? '')}`);
}

function noJail(unavailable: string): Jail {
  return {
    unavailable,
    bounds: 'rlimits',
    run() {
      throw noneHere(unavailable);
    },
    async [Symbol.asyncDispose]() {},
  };
}

const noneHere = (why: string) => new AppError('unavailable', `Commands run in a jail or not at all, and there is none here: ${why}`);

/** Fails as `run` would, before anything is prepared. */
export function refuseWithout(jail: Jail): void {
  if (jail.unavailable !== undefined) throw noneHere(jail.unavailable);
}

/** Returns why the simplest program cannot be run, or undefined when it can. */
async function probe(jail: Jail, clock: Clock): Promise<string | undefined> {
  const started = jail.run({ argv: ['true'], cwd: '/', mounts: [], env: { PATH: jailPath }, network: false, limits: probeLimits });
  const cancel = clock.after(probeMs, () => started.kill());
  let text = '';
  started.stdout.resume();
  started.stdin.end();
  started.stderr.setEncoding('utf8').on('data', (part: string) => {
    text = (text + part).slice(0, 300);
  });
  const { code, signal } = await started.ended;
  cancel();
  return code === 0 ? undefined : text.trim().replaceAll('\n', '; ') || `it ended with ${signal ?? code}`;
}

/** Lists the host's folders. Those that are links on a merged system are links inside. */
async function listHostFolders(): Promise<HostFolders> {
  const links: [string, string][] = [];
  const folders: string[] = [];
  for (const path of ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store']) {
    const stat = await lstat(path).catch(() => undefined);
    if (stat?.isSymbolicLink() === true) links.push([path, await readlink(path)]);
    else if (stat?.isDirectory() === true) folders.push(path);
  }
  return { links, folders, node: process.execPath };
}

interface Host {
  readonly bubblewrap: string;
  readonly prlimit: string;
  /** The system call filter. */
  readonly filter: Buffer;
  readonly folders: HostFolders;
  readonly cgroups: Cgroups | undefined;
  readonly clock: Clock;
  readonly nestedNamespaces: boolean;
}

function createJail(host: Host): Jail {
  const running = new Set<JailedProcess>();
  return {
    unavailable: undefined,
    bounds: host.cgroups === undefined ? 'rlimits' : 'cgroup',
    run(spec) {
      const started = start(host, spec);
      running.add(started);
      void started.ended.then(() => running.delete(started));
      return started;
    },
    async [Symbol.asyncDispose]() {
      for (const started of running) started.kill();
      await Promise.all([...running].map((started) => started.ended));
    },
  };
}

function start({ bubblewrap, prlimit, filter, folders, cgroups, clock, nestedNamespaces }: Host, spec: JailSpec): JailedProcess {
  const options = toArgumentBytes(bubblewrapArguments(spec, folders, { nestedNamespaces }));
  const limits = [
    '--core=0',
    `--nofile=${spec.limits.openFiles}`,
    `--fsize=${spec.limits.fileBytes}`,
    `--cpu=${spec.limits.cpuSeconds}:${spec.limits.cpuSeconds + 1}`,
    ...(cgroups === undefined ? [`--data=${spec.limits.memoryBytes + reservedBytes}`] : []),
    ...(cgroups === undefined && countsPerNamespace ? [`--nproc=${spec.limits.processes + 2}`] : []),
  ];
  const child = spawn(
    '/bin/sh',
    [
      '-c',
      jailScript(cgroups?.joining(spec.limits)),
      'jail',
      bubblewrap,
      '--args',
      String(pipes.options),
      '--',
      prlimit,
      ...limits,
      '--',
      ...spec.argv,
    ],
    // In a separate session, so that Ctrl-C in the daemon's terminal does not stop it before the daemon does.
    {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', [daemonVariable]: String(process.pid) },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    },
  );
  // Listened to at once: without a free descriptor the child has no pipes, and its error follows.
  child.on('error', () => {});
  const { stdin, stdout, stderr } = child;
  if (!(stdin instanceof Writable)) throw new AppError('unavailable', 'The program cannot be started: too many files and sockets are open');
  const [optionsPipe, filterPipe] = [child.stdio[pipes.options], child.stdio[pipes.filter]];
  if (stdout === null || stderr === null || !(optionsPipe instanceof Writable) || !(filterPipe instanceof Writable))
    throw new AppError('internal', 'a program was started without its pipes');
  // Options contain the environment and paths of the host: they must not appear in the list of processes.
  optionsPipe.on('error', () => {});
  optionsPipe.end(options);
  filterPipe.on('error', () => {});
  filterPipe.end(filter);
  stdin.on('error', () => {});

  const { pid } = child;
  let bound: JailBound | undefined;
  const watch =
    pid === undefined || cgroups !== undefined
      ? undefined
      : watchGroup({ clock, pid, limits: spec.limits }, (which) => {
          bound = which;
          kill();
        });
  const { promise: ended, resolve } = Promise.withResolvers<JailEnd>();
  let over = false;
  const kill = () => {
    if (!over && pid !== undefined && child.exitCode === null && child.signalCode === null) killWithChildren(pid);
  };
  const finish = async (end: JailEnd) => {
    if (over) return;
    over = true;
    if (pid !== undefined) {
      bound ??= await cgroups?.hit(pid);
      await Promise.all([watch?.end(goneMs), cgroups?.remove(pid, { clock, withinMs: goneMs })]);
    }
    resolve({ ...end, ...(bound !== undefined && { bound }) });
  };
  child.on('error', () => void finish({ code: null, signal: null }));
  child.on('exit', (code, signal) => void finish(toEnd(code, signal)));
  return { stdin, stdout, stderr, ended, kill };
}

/** bubblewrap ties its child to its own life only once the namespaces exist: before that the child would survive and run the program. */
function killWithChildren(pid: number): void {
  // At first the child is in the same process group, later in a separate session.
  for (const each of [-pid, ...childrenOf(pid)]) {
    try {
      process.kill(each, 'SIGKILL');
    } catch {
      // Gone meanwhile.
    }
  }
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .split(' ')
      .filter((word) => word.trim() !== '')
      .map(Number);
  } catch {
    return [];
  }
}

/** bubblewrap reports a signal the way a shell does. */
function toEnd(code: number | null, signal: string | null): JailEnd {
  const name = code !== null && code > 128 ? signalNames.get(code - 128) : undefined;
  return name === undefined ? { code, signal } : { code: null, signal: name };
}

const signalNames = new Map<number, string>([
  [1, 'SIGHUP'],
  [2, 'SIGINT'],
  [3, 'SIGQUIT'],
  [4, 'SIGILL'],
  [6, 'SIGABRT'],
  [7, 'SIGBUS'],
  [8, 'SIGFPE'],
  [9, 'SIGKILL'],
  [11, 'SIGSEGV'],
  [13, 'SIGPIPE'],
  [15, 'SIGTERM'],
  [24, 'SIGXCPU'],
  [25, 'SIGXFSZ'],
  [31, 'SIGSYS'],
]);
