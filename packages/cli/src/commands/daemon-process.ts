import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { CliError } from '../failure.ts';
import type { Io } from '../io.ts';

/** Starts the daemon, or one of its modes, as a child. */
export function launchDaemon(args: readonly string[], stdio: StdioOptions, io: Io): ChildProcess {
  requireDaemon(io);
  return spawn(io.nodePath, [io.daemonEntry, ...args], { stdio, env: { ...io.env }, cwd: io.workingDir });
}

export function requireDaemon(io: Io): void {
  if (!existsSync(io.daemonEntry))
    throw new CliError(`The daemon is not built: ${io.daemonEntry} does not exist.`, { hint: 'Run `npm start` once; it builds what is missing.' });
}

/** Waits for the exit code; a signal counts as 128 plus its number, as in a shell. */
function exitOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

/** Runs the daemon as a child that shares the terminal, and forwards signals that reach only this process. */
export async function runDaemon(args: readonly string[], io: Io): Promise<number> {
  const child = launchDaemon(args, 'inherit', io);
  // Ctrl-C reaches the whole foreground group, so the child has it already; a second one would skip draining.
  const isInteractive = io.stdin.isTTY === true;
  const forward = (signal: NodeJS.Signals) => void child.kill(signal);
  const ignore = () => undefined;
  const handlers: [NodeJS.Signals, (signal: NodeJS.Signals) => void][] = [
    ['SIGTERM', forward],
    ['SIGHUP', forward],
    ['SIGINT', isInteractive ? ignore : forward],
  ];
  for (const [signal, handler] of handlers) process.on(signal, handler);
  try {
    return await exitOf(child);
  } finally {
    for (const [signal, handler] of handlers) process.off(signal, handler);
  }
}

/** Runs one of the daemon's modes to completion and returns its output. */
export async function readDaemonMode(args: readonly string[], io: Io): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = launchDaemon(args, ['ignore', 'pipe', 'pipe'], io);
  const read = (stream: Readable | null) => (stream === null ? '' : text(stream));
  const [code, stdout, stderr] = await Promise.all([exitOf(child), read(child.stdout), read(child.stderr)]);
  return { code, stdout, stderr };
}

/** Runs one of the daemon's modes and yields its output lines; passes its errors to standard error. */
export async function* runDaemonMode(args: readonly string[], io: Io): AsyncGenerator<string, number, undefined> {
  const child = launchDaemon(args, ['ignore', 'pipe', 'pipe'], io);
  child.stderr?.on('data', (data: Buffer) => void io.stderr.write(data));
  const ended = exitOf(child);
  // The failure is thrown below, after all lines.
  ended.catch(() => undefined);
  if (child.stdout !== null) yield* createInterface({ input: child.stdout, crlfDelay: Infinity });
  return await ended;
}
