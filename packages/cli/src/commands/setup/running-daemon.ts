import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@gatehouse/client';
import { askControlInfo } from '../../connection/control-socket.ts';
import { connect, type ConnectionFlags, controlSocketFile, homeDir } from '../../connection/target.ts';
import { CliError } from '../../failure.ts';
import type { Io } from '../../io.ts';
import { launchDaemon } from '../daemon-process.ts';

const startLimitMs = 120_000;
const pollMs = 50;
/** Characters kept of what a daemon that does not start has printed. */
const maxKept = 4_000;

export interface RunningDaemon extends AsyncDisposable {
  readonly client: Client;
  readonly url: string;
  /** Home folder; undefined for a daemon that is reached by its address. */
  readonly home: string | undefined;
  /** Whether this command started it, and stops it in the end. */
  readonly isOurs: boolean;
}

/** Connects to the daemon; starts the one of the home folder when none runs there. */
export async function openDaemon(
  flags: ConnectionFlags,
  io: Io,
  { signal, onStart }: { readonly signal: AbortSignal; readonly onStart: (home: string) => void },
): Promise<RunningDaemon> {
  const isRemote = flags.url !== undefined || (flags.home === undefined && (io.env['GATEHOUSE_URL'] ?? '') !== '');
  if (isRemote) return { ...(await connect(flags, io)), home: undefined, isOurs: false, async [Symbol.asyncDispose]() {} };
  const home = homeDir(flags, io);
  // With the home named, the socket in it says where the daemon listens.
  const local = { ...flags, home };
  if ((await askControlInfo(controlSocketFile(home))) !== undefined)
    return { ...(await connect(local, io)), home, isOurs: false, async [Symbol.asyncDispose]() {} };
  onStart(home);
  const child = launchDaemon(['--home', home], ['ignore', 'pipe', 'pipe'], io);
  const stop = () => stopProcess(child);
  try {
    await untilReady(child, controlSocketFile(home), signal);
    return { ...(await connect(local, io)), home, isOurs: true, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function untilReady(child: ChildProcess, socketFile: string, signal: AbortSignal): Promise<void> {
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data: Buffer) => {
      printed = (printed + data.toString()).slice(-maxKept);
    });
  let failure: Error | undefined;
  child.once('error', (error) => (failure = error));
  // Unlike its exit, this comes after all that it printed.
  let isClosed = false;
  child.once('close', () => (isClosed = true));
  const deadline = performance.now() + startLimitMs;
  while (performance.now() < deadline) {
    if (failure !== undefined || isClosed) throw notStarted(failure?.message ?? sentencesOf(printed));
    // The socket is opened last, after the listener.
    if ((await askControlInfo(socketFile)) !== undefined) return;
    await wait(pollMs, undefined, { signal });
  }
  throw notStarted(`it was not ready within ${startLimitMs / 1000} s`);
}

function notStarted(cause: string): CliError {
  return new CliError(`The daemon did not start${cause === '' ? '' : `: ${cause}`}`, { code: 'not_started', hint: '`gatehouse doctor` finds more.' });
}

/** Returns what a daemon said before it ended, without its log. */
function sentencesOf(printed: string): string {
  return printed
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('{'))
    .map((line) => line.replace(/^gatehouse: /, ''))
    .join('; ');
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'close');
  child.kill('SIGTERM');
  await ended;
}
