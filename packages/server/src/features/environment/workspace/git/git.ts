import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { daemonVariable } from '../../../../kernel/lifecycle/kill-processes.ts';
import { sleep } from '../../../../kernel/timers.ts';

export interface GitRun {
  readonly gitDir: string;
  /** The folder that is compared with the repository; absent for commands that use the repository alone. */
  readonly workTree?: string;
  /** Made of constants, then `--` or a revision, then names. */
  readonly args: readonly string[];
  readonly input?: AsyncIterable<Uint8Array>;
  /** Beyond it, output is cut and the program terminated. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

/** Thrown when git blocks on a file that never yields data, such as a pipe in the workspace. */
export class GitStalled extends Error {}

export interface GitResult {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly cut: boolean;
  readonly stderr: string;
}

/** Runs the program `git` with limits on time and output. Fails with `unavailable` if it is not installed, with `timeout` if it takes too long. */
export type Git = (run: GitRun) => Promise<GitResult>;

const timeoutMs = 30_000;
/** A program that sleeps for so long without using processor time waits for something that may never arrive. */
const stalledMs = 2000;
const stallCheckMs = 250;
const defaultMaxBytes = 1024 * 1024;
const maxErrorBytes = 4096;

/**
 * Disables everything that makes git start another program or read files elsewhere, overriding any configuration. The
 * repository, and with it its configuration and hooks, is outside of the workspace in the first place.
 */
const settings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.attributesFile=/dev/null',
  'core.excludesFile=/dev/null',
  'core.autocrlf=false',
  'core.safecrlf=false',
  'core.fileMode=false',
  'core.quotePath=false',
  'core.logAllRefUpdates=false',
  'gc.auto=0',
  'log.showSignature=false',
  'log.mailmap=false',
  'submodule.recurse=false',
  'protocol.allow=never',
].flatMap((setting) => ['-c', setting]);

const defaultPath = '/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin';

function explainStart(error: unknown): never {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
    throw new AppError('unavailable', 'The program "git" is not installed on this machine; install it and try again', { cause: error });
  throw error;
}

/** `path` is the search path for programs; no other variable is passed on. */
export function createGit({ clock, path = defaultPath }: { readonly clock: Clock; readonly path?: string | undefined }): Git {
  const env = {
    PATH: path,
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_LITERAL_PATHSPECS: '1',
    [daemonVariable]: String(process.pid),
  };

  return async ({ gitDir, workTree, args, input, maxBytes = defaultMaxBytes, signal }) => {
    const place = [`--git-dir=${gitDir}`, ...(workTree === undefined ? [] : [`--work-tree=${workTree}`])];
    const child = spawn('git', ['--no-pager', ...place, ...settings, ...args], {
      cwd: gitDir,
      env,
      // A separate process group: git starts helpers, which are terminated with it.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    // Without a free descriptor it has no pipes either.
    if (child.pid === undefined) await ended.catch(explainStart);
    const out = collect(child.stdout, maxBytes, () => kill());
    const err = collect(child.stderr, maxErrorBytes, () => {});
    let failed: Error | undefined;
    const kill = (why?: Error) => {
      failed ??= why;
      if (child.pid === undefined) return;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It ended on its own.
      }
    };
    const cancelTimeout = clock.after(timeoutMs, () => kill(new AppError('timeout', `git took longer than ${timeoutMs} ms`)));
    const isOver = new AbortController();
    const stalled = () => kill(new GitStalled('git waits for a file of the workspace'));
    if (workTree !== undefined && child.pid !== undefined) void watchStall(clock, child.pid, stalled, isOver.signal);
    const onAbort = () => kill(new AppError('cancelled', 'git was stopped'));
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    const fed = feed(input, child.stdin, kill);
    try {
      const code = await ended;
      await fed;
      if (failed !== undefined) throw failed;
      return { code, stdout: out.bytes(), cut: out.cut(), stderr: err.bytes().toString() };
    } finally {
      cancelTimeout();
      isOver.abort();
      signal?.removeEventListener('abort', onAbort);
    }
  };
}

/** Calls `stalled` once for a program that was asleep in several checks, until the signal. Works only on Linux. */
async function watchStall(clock: Clock, pid: number, stalled: () => void, signal: AbortSignal): Promise<void> {
  let before: string | undefined;
  for (let sleptMs = 0; sleptMs < stalledMs;) {
    await sleep(clock, stallCheckMs, signal);
    const now = signal.aborted ? undefined : await sleepOf(pid);
    if (signal.aborted) return;
    sleptMs = now !== undefined && now === before ? sleptMs + stallCheckMs : 0;
    before = now;
  }
  stalled();
}

/** Returns the processor time of a program whose threads all sleep; undefined when it works, waits for a disk, or is unknown. */
async function sleepOf(pid: number): Promise<string | undefined> {
  try {
    const times: string[] = [];
    for (const thread of await readdir(`/proc/${pid}/task`)) {
      const stat = await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields[0] !== 'S') return undefined;
      times.push(`${thread} ${fields[11]} ${fields[12]}`);
    }
    return times.join();
  } catch {
    return undefined;
  }
}

/** Terminates the program when its input cannot be read; that it exits before reading everything is not an error. */
async function feed(input: AsyncIterable<Uint8Array> | undefined, stdin: NodeJS.WritableStream, kill: (why: Error) => void): Promise<void> {
  let own: Error | undefined;
  async function* guarded() {
    try {
      yield* input ?? [];
    } catch (error) {
      own = error instanceof Error ? error : new Error('the input failed', { cause: error });
      throw error;
    }
  }
  try {
    await pipeline(Readable.from(guarded()), stdin);
  } catch {
    if (own !== undefined) kill(own);
  }
}

function collect(stream: Readable, maxBytes: number, onCut: () => void): { readonly bytes: () => Buffer; readonly cut: () => boolean } {
  const chunks: Buffer[] = [];
  let length = 0;
  let cut = false;
  stream.on('data', (chunk: Buffer) => {
    const room = maxBytes - length;
    if (chunk.length > room) {
      if (!cut) onCut();
      cut = true;
    }
    if (room <= 0) return;
    const kept = chunk.subarray(0, room);
    chunks.push(kept);
    length += kept.length;
  });
  return { bytes: () => Buffer.concat(chunks), cut: () => cut };
}
