import type { Readable } from 'node:stream';
import type { Clock } from '../../../../kernel/clock.ts';
import { type Jail, type JailBound, jailHome, type JailMount, jailPath, type JailLimits } from '../../../../kernel/jail.ts';
import { settledWithin } from '../../../../kernel/timers.ts';
import { javascriptClient, pythonClient } from './client-source.ts';

export type Language = 'ts' | 'js' | 'py';

/** Why a script failed. */
export type FailureClass = 'timeout' | 'stdout_cap' | 'nonzero_exit' | 'spawn_fail' | 'lease_absent' | 'killed';

export interface ScriptRun {
  readonly exitCode: number | null;
  readonly failureClass?: FailureClass;
  readonly stdout: string;
  /** The limit that was reached. */
  readonly bound?: JailBound;
  /** The end of standard error. */
  readonly stderr: string;
}

export interface ScriptSpec {
  readonly script: string;
  readonly language: Language;
  readonly timeoutMs: number;
  readonly bearer: string;
  /** Path on the host. */
  readonly socketFile: string;
  readonly cwd: string;
  readonly mounts: readonly JailMount[];
  readonly masked: readonly string[];
  readonly limits: JailLimits;
  readonly signal: AbortSignal;
}

export const maxStdoutBytes = 1024 * 1024;
const keptErrorBytes = 4096;
const burstBytes = 256 * 1024;
const restMs = 20;
/** How long output may still arrive after all processes have exited. */
const drainMs = 2000;
const socketInside = '/run/gatehouse/capability.sock';

const preload = `--import=data:text/javascript;base64,${Buffer.from(javascriptClient).toString('base64')}`;
const commands: Readonly<Record<Language, readonly [string, ...string[]]>> = {
  ts: ['node', preload, '--input-type=module-typescript', '-'],
  js: ['node', preload, '--input-type=module', '-'],
  // -I: neither the environment nor the working directory determines where modules are loaded from.
  py: ['python3', '-I', '-c', pythonClient],
};

/** Runs a script in the jail until it exits or exceeds a limit, or its turn ends. It comes from standard input, never from a file. */
export async function runScript(clock: Clock, jail: Jail, spec: ScriptSpec): Promise<ScriptRun> {
  let stopped: FailureClass | undefined;
  const started = jail.run({
    argv: commands[spec.language],
    cwd: spec.cwd,
    mounts: [...spec.mounts, { from: spec.socketFile, to: socketInside, writable: false }],
    masked: spec.masked,
    env: { PATH: jailPath, HOME: jailHome, GATEHOUSE_CAP_LEASE: spec.bearer, GATEHOUSE_ORCH_SOCKET: socketInside },
    network: false,
    limits: spec.limits,
  });
  const stop = (why: FailureClass) => {
    stopped ??= why;
    started.kill();
  };
  const cancel = clock.after(spec.timeoutMs, () => stop('timeout'));
  const onAbort = () => stop('killed');
  if (spec.signal.aborted) onAbort();
  else spec.signal.addEventListener('abort', onAbort, { once: true });
  try {
    const stdout = gather(started.stdout, (size) => size > maxStdoutBytes && stop('stdout_cap'), maxStdoutBytes);
    const stderr = gatherEnd(started.stderr, clock);
    started.stdin.end(spec.script);
    const { code, signal, bound } = await started.ended;
    await settledWithin(clock, drainMs, [stdout.done, stderr.done]);
    started.stdout.destroy();
    started.stderr.destroy();
    const failureClass = stopped ?? (code === 0 ? undefined : code === null && signal === null ? 'spawn_fail' : 'nonzero_exit');
    return {
      exitCode: code,
      ...(failureClass !== undefined && { failureClass }),
      ...(bound !== undefined && { bound }),
      stdout: stdout.text(),
      stderr: stderr.text(),
    };
  } finally {
    cancel();
    spec.signal.removeEventListener('abort', onAbort);
  }
}

function gather(stream: Readable, sized: (bytes: number) => void, most: number) {
  const parts: Buffer[] = [];
  let size = 0;
  stream.on('data', (part: Buffer) => {
    if (size < most) parts.push(part.subarray(0, most - size));
    size += part.length;
    sized(size);
  });
  return { done: closed(stream), text: () => Buffer.concat(parts).toString('utf8').toWellFormed() };
}

/** Keeps the end of a stream, at a pace that leaves the daemon time and its garbage collector memory for other work. */
function gatherEnd(stream: Readable, clock: Clock) {
  let kept: Buffer = Buffer.alloc(0);
  let burst = 0;
  stream.on('data', (part: Buffer) => {
    kept = Buffer.from(Buffer.concat([kept.subarray(-keptErrorBytes), part.subarray(-keptErrorBytes)]).subarray(-keptErrorBytes));
    burst += part.length;
    if (burst < burstBytes) return;
    burst = 0;
    stream.pause();
    clock.after(restMs, () => stream.resume());
  });
  return { done: closed(stream), text: () => kept.toString('utf8').toWellFormed() };
}

function closed(stream: Readable): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.on('close', resolve);
  stream.on('error', () => resolve());
  return promise;
}
