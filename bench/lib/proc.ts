import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { openSync, closeSync, readdirSync, readFileSync } from 'node:fs';
import { get as httpGet } from 'node:http';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Servers run on the first CPU, load and fake provider on the second: they do not compete for CPU. */
export const serverCpu = 0;
export const clientCpu = 1;
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V'], { stdio: 'ignore' }).status === 0;

export interface Running {
  readonly pid: number;
  /** Spawn to first healthy answer. */
  readonly startMs: number;
  /** Asks the probe in the process; fails when it was started without one. */
  ask(question: ProbeQuestion): Promise<ProbeAnswer>;
  /** Stops the process with SIGTERM, after five seconds with SIGKILL; resolves when it is gone. */
  stop(): Promise<void>;
}

/** `collect` garbage; `watch` how late timers fire from now on; stop that and report the `delays`. */
export type ProbeQuestion = 'collect' | 'watch' | 'delays';

export interface ProbeAnswer {
  readonly question: ProbeQuestion;
  /** Milliseconds, one for every five. */
  readonly delays: readonly number[];
  /** The part of each delay in which the thread itself worked: the rest is other load on the machine. */
  readonly held: readonly number[];
}

export interface StartOptions {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly healthUrl: string;
  readonly cpu: number;
  readonly timeoutMs?: number;
  /** File for its output. */
  readonly log?: string;
  /** Loads `probe.ts` in it. */
  readonly probe?: boolean;
}

export function spawnPinned(
  args: readonly string[],
  cpu: number,
  options: { env: Record<string, string | undefined>; stdio: ('ignore' | 'inherit' | 'pipe' | 'ipc' | number)[] },
): ChildProcess {
  return canPin ? spawn('taskset', ['-c', String(cpu), process.execPath, ...args], options) : spawn(process.execPath, args, options);
}

/** Starts Node with `args` and waits until `healthUrl` answers below 500. */
export async function start(options: StartOptions): Promise<Running> {
  const started = performance.now();
  const out = options.log === undefined ? 'ignore' : openSync(options.log, 'a');
  const args = options.probe === true ? ['--import', join(import.meta.dirname, 'probe.ts'), ...options.args] : options.args;
  const stdio = options.probe === true ? (['ignore', out, out, 'ipc'] as const) : (['ignore', out, out] as const);
  const child = spawnPinned(args, options.cpu, { env: { ...process.env, ...options.env }, stdio: [...stdio] });
  if (typeof out === 'number') closeSync(out);
  const { pid } = child;
  if (pid === undefined) throw new Error(`could not start ${options.args.join(' ')}`);
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const deadline = started + (options.timeoutMs ?? 15_000);
  while (!(await isHealthy(options.healthUrl))) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`${options.args.join(' ')} ended with ${child.exitCode ?? child.signalCode} before it was healthy${tail(options.log)}`);
    if (performance.now() > deadline) {
      child.kill('SIGKILL');
      await gone;
      throw new Error(`${options.args.join(' ')}: no healthy answer from ${options.healthUrl}${tail(options.log)}`);
    }
    await sleep(2);
  }
  const startMs = performance.now() - started;
  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), 5000);
    await gone;
    clearTimeout(force);
  }
  return { pid, startMs, ask: (question) => ask(child, question), stop };
}

function ask(child: ChildProcess, question: ProbeQuestion): Promise<ProbeAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<ProbeAnswer>();
  const gone = (): void => reject(new Error(`the server ended before it answered the probe's "${question}"`));
  child.once('exit', gone);
  child.once('message', (answer: ProbeAnswer) => {
    child.off('exit', gone);
    resolve(answer);
  });
  child.send(question, (error) => error !== null && reject(error));
  return promise;
}

function tail(log: string | undefined): string {
  return log === undefined ? '' : `:\n${readFileSync(log, 'utf8').slice(-2000)}`;
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    return (await get(url)).status < 500;
  } catch {
    return false;
  }
}

/** Sends one GET on a new connection; returns the body as text. */
export function get(url: string): Promise<{ readonly status: number; readonly body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const request = httpGet(url, { agent: false, timeout: 1000 }, (response) => {
    let body = '';
    response.on('data', (part: Buffer) => (body += part.toString()));
    response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    response.on('error', reject);
  });
  request.on('timeout', () => request.destroy(new Error('timeout')));
  request.on('error', reject);
  return promise;
}

/** The process and its descendants. */
function tree(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = readOrEmpty(`/proc/${entry}/stat`);
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const all: number[] = [];
  const walk = (one: number): void => {
    all.push(one);
    for (const child of children.get(one) ?? []) walk(child);
  };
  walk(pid);
  return all;
}

/** A process or thread may end while it is read. */
function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** On-CPU time of the process, its descendants and all their threads, in microseconds; nanosecond clock of the scheduler. */
export function cpuUs(pid: number): number {
  let nanoseconds = 0;
  for (const one of tree(pid)) {
    for (const thread of readdirSync(`/proc/${one}/task`))
      nanoseconds += Number(readOrEmpty(`/proc/${one}/task/${thread}/schedstat`).split(' ')[0] || 0);
  }
  return nanoseconds / 1000;
}

export function rssMb(pid: number): number {
  return tree(pid).reduce((sum, one) => sum + Number(/VmRSS:\s+(\d+)/.exec(readOrEmpty(`/proc/${one}/status`))?.[1] ?? 0), 0) / 1024;
}
