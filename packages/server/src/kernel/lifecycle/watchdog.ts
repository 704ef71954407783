import { writeSync } from 'node:fs';
import type { Clock } from '../clock.ts';

const beatMs = 1_000;
const checkMs = 5_000;
/** Checks without a beat (thirty seconds) after which the event loop counts as blocked. Not a time, or a suspended process would count too. */
const silentChecks = 6;

export interface Heartbeat extends Disposable {
  /** Pass it to the watching thread. */
  readonly beats: SharedArrayBuffer;
}

/** Counts once a second while the event loop of this thread runs. */
export function beginHeartbeat(clock: Clock): Heartbeat {
  const beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const counter = new Int32Array(beats);
  let cancel = clock.after(beatMs, beat);
  function beat(): void {
    Atomics.add(counter, 0, 1);
    cancel = clock.after(beatMs, beat);
  }
  return { beats, [Symbol.dispose]: () => cancel() };
}

/**
 * Runs in another thread and kills the process when the heartbeat stops: a process whose event loop is blocked answers nobody,
 * not even SIGTERM (reliability §4.4), and what is acknowledged is on disk.
 */
export function watchHeartbeat(beats: SharedArrayBuffer, { clock, end = endProcess }: { readonly clock: Clock; readonly end?: () => void }): void {
  const counter = new Int32Array(beats);
  let last = Atomics.load(counter, 0);
  let silent = 0;
  function check(): void {
    const now = Atomics.load(counter, 0);
    silent = now === last ? silent + 1 : 0;
    last = now;
    if (silent === silentChecks) end();
    clock.after(checkMs, check);
  }
  clock.after(checkMs, check);
}

function endProcess(): void {
  // The thread that writes the log is the one that hangs.
  writeSync(2, `${JSON.stringify({ level: 'fatal', module: 'watchdog', msg: 'The event loop was blocked for 30 seconds: killing the daemon' })}\n`);
  process.kill(process.pid, 'SIGKILL');
}
