import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, readFile, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { http } from './http.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url));
/** Path of the bundle with all faults of proving/broken, if one was made (broken-bundle.ts). */
export const brokenBundleAt = 'PROVING_BROKEN_BUNDLE';
/** Folder of the copy of dist/ that daemons run from; in the environment, so that harnesses in separate processes find it too. */
const frozenAt = 'PROVING_BUNDLE';
const sources = join(root, 'packages/server/src/main.ts');
/** Compiled code of the sources; a module with a fault is compiled again, because its text differs. */
const compiled = join(root, 'node_modules/.cache/compiled');

/** The folder of the bundle that daemons run from. */
const bundleDir = (): string => (process.env[frozenAt] === undefined ? join(root, 'dist') : dirname(process.env[frozenAt]));

/** Returns the folder of the dashboard; a daemon with faults has none next to it. */
export const dashboardDir = (): string => join(bundleDir(), 'dashboard');

/** Copies the bundle for daemons to run from; returns its program. */
export async function copyBundle(dir: string): Promise<string> {
  await cp(bundleDir(), dir, { recursive: true, filter: (source) => !source.endsWith('.compile-cache') });
  return join(dir, 'main.js');
}

/** Makes daemons run from a copy of the current dist/: a build during a long proof does not affect it. */
export async function freezeBundle(dir: string): Promise<void> {
  process.env[frozenAt] = await copyBundle(dir);
  // Packages that are not part of the bundle.
  await symlink(join(root, 'node_modules'), join(dir, 'node_modules'));
}

/** A start takes half a second; on a machine that does much else, twenty times as long is not a failure yet. */
const defaultReadyMs = 60_000;

/** Secret of the first token, scope `*`, of every daemon that a harness starts. */
export const operatorToken = 'operator-token-of-the-proving-suite-0123456789';

export interface DaemonOptions {
  readonly home: string;
  readonly port: number;
  /** Files of proving/broken, by name: the daemon then runs from a bundle, or without one from its sources, with these faults built in. */
  readonly broken?: string | readonly string[];
  /** The faults are in modules that are loaded when they are first used: the caller checks that they are in. */
  readonly loadsFaultsLater?: boolean;
  /** The program, instead of the bundle in dist/. */
  readonly program?: string;
  /** Null: no GATEHOUSE_TOKEN, as on a first start. */
  readonly token?: string | null;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** The home, for starts that create it themselves. */
  readonly workingDir?: string;
  /** A program that runs the daemon in the same process id, such as `strace -D`. */
  readonly under?: readonly string[];
  readonly readyTimeoutMs?: number;
  /** Modules that are loaded first into each of its threads, to observe the daemon. */
  readonly hooks?: readonly string[];
  /** The maximum of its heap, in MiB. */
  readonly heapMb?: number;
  /** Collects garbage at SIGUSR2. */
  readonly collects?: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A daemon in a separate process. */
export interface Daemon {
  readonly pid: number;
  readonly port: number;
  readonly home: string;
  readonly token: string;
  readonly child: ChildProcess;
  /** Milliseconds from spawn to the first 200 of `/health?ready`. */
  readonly readyMs: number;
  stdout(): string;
  stderr(): string;
  readonly exited: Promise<Exit>;
  /** SIGKILL, by process id; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves when the process is gone, and kills it after `withinMs`. */
  stop(withinMs?: number): Promise<Exit>;
}

const faultsOf = ({ broken = [] }: DaemonOptions): readonly string[] => (typeof broken === 'string' ? [broken] : broken);

/** Keeps the newest part of a stream of text. */
function tail(stream: NodeJS.ReadableStream | null) {
  let text = '';
  stream?.setEncoding('utf8');
  stream?.on('data', (piece: string) => {
    text = (text + piece).slice(-200_000);
  });
  return () => text;
}

/** Resident memory of a process in MiB; 0 where there is no /proc. */
export async function residentMbOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

/** Starts a daemon without waiting for it. Its environment holds only what is named here. */
export function spawnDaemon(options: DaemonOptions): Omit<Daemon, 'readyMs'> {
  const token = options.token === undefined ? operatorToken : options.token;
  const faults = faultsOf(options).map((name) => join(root, 'proving/broken', `${name}.ts`));
  const missing = faults.find((file) => !existsSync(file));
  if (missing !== undefined) throw new Error(`there is no broken build ${missing}`);
  const whole = process.env[frozenAt] ?? join(root, 'dist/main.js');
  const withFaults = process.env[brokenBundleAt] ?? sources;
  const entry = options.program ?? (faults.length === 0 ? whole : withFaults);
  if (!existsSync(entry)) throw new Error(`${entry} is missing; npm test builds it, and so does: node tools/build.mjs`);
  const imports = [
    ...(entry === sources ? faults : []),
    ...(options.hooks ?? []),
    ...(options.collects === true ? [join(import.meta.dirname, 'collector.ts')] : []),
  ];
  const flags = [
    ...imports.map((file) => `--import="${pathToFileURL(file).href}"`),
    ...(options.heapMb === undefined ? [] : [`--max-old-space-size=${options.heapMb}`]),
  ];
  const node = [process.execPath, entry, '--home', options.home, '--port', String(options.port), ...(options.args ?? [])];
  const [command = '', ...args] = [...(options.under ?? []), ...node];
  const child = spawn(command, args, {
    cwd: options.workingDir ?? options.home,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: options.workingDir ?? options.home,
      // The storage threads ignore flags of the main thread, but accept these. Sources leave no cache in their folders: a start with one takes half the time.
      ...(flags.length > 0 && { NODE_OPTIONS: flags.join(' ') }),
      ...(entry === sources && { NODE_COMPILE_CACHE: compiled }),
      ...(entry === withFaults && { PROVING_FAULTS: faultsOf(options).join(',') }),
      ...(token !== null && { GATEHOUSE_TOKEN: token }),
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stdout = tail(child.stdout);
  const stderr = tail(child.stderr);
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  exited.catch(() => undefined);
  const pid = child.pid ?? -1;
  const signal = (name: NodeJS.Signals) => child.exitCode === null && child.signalCode === null && pid > 0 && child.kill(name);
  return {
    pid,
    port: options.port,
    home: options.home,
    token: token ?? '',
    child,
    stdout,
    stderr,
    exited,
    async kill() {
      signal('SIGKILL');
      await exited;
    },
    async stop(withinMs = 10_000) {
      signal('SIGTERM');
      const timer = setTimeout(() => signal('SIGKILL'), withinMs);
      try {
        return await exited;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** Starts a daemon and waits until `/health?ready` answers 200; fails with its log when it does not. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const startedAt = performance.now();
  const daemon = spawnDaemon(options);
  const deadline = startedAt + (options.readyTimeoutMs ?? defaultReadyMs);
  let gone = false;
  void daemon.exited.then(
    () => (gone = true),
    () => (gone = true),
  );
  for (;;) {
    if (gone) {
      const { code, signal } = await daemon.exited;
      throw new Error(`the daemon ended with ${code ?? signal} before it was ready\n${logOf(daemon)}`);
    }
    if (await isReady(options.port)) break;
    if (performance.now() > deadline) {
      await daemon.kill();
      throw new Error(`the daemon was not ready within ${options.readyTimeoutMs ?? defaultReadyMs} ms\n${logOf(daemon)}`);
    }
    await pause(10);
  }
  const readyMs = performance.now() - startedAt;
  if (options.loadsFaultsLater === true) return { ...daemon, readyMs };
  // Some threads load further modules after they are ready.
  const absent = (): string | undefined => faultsOf(options).find((name) => !daemon.stderr().includes(`broken build: ${name}`));
  while (absent() !== undefined) {
    if (performance.now() < deadline) await pause(10);
    else {
      await daemon.kill();
      throw new Error(`the fault ${absent()} was not built in: its module was never loaded\n${logOf(daemon)}`);
    }
  }
  return { ...daemon, readyMs };
}

async function isReady(port: number): Promise<boolean> {
  try {
    return (await http({ port, path: '/health?ready', timeoutMs: 2_000 })).status === 200;
  } catch {
    return false;
  }
}

export function logOf(daemon: Pick<Daemon, 'stdout' | 'stderr'>): string {
  return `${daemon.stdout().slice(-2_000)}\n${daemon.stderr().slice(-4_000)}`;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
