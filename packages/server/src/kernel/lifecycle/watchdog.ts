import { writeSync } from 'node:fs';
import type { Clock } from '../clock.ts';

const beatMs = 1_000;
const lookMs = 5_000;
/** Looks without a beat after which the event loop counts as held: thirty seconds. Looks and not time, so that a process that was stopped and goes on is not mistaken for one. */
const silentLooks = 6;

export interface Heartbeat extends Disposable {
  /** To be handed to the thread that watches. */
  readonly beats: SharedArrayBuffer;
}

/** Counts a second at a time for as long as the event loop of this thread runs. */
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
 * Runs in another thread and ends the process when the heart stopped: a process whose event loop is held answers nobody,
 * not even SIGTERM (reliability §4.4), and what is acknowledged is on disk.
 */
export function watchHeartbeat(beats: SharedArrayBuffer, { clock, end = endProcess }: { readonly clock: Clock; readonly end?: () => void }): void {
  const counter = new Int32Array(beats);
  let last = Atomics.load(counter, 0);
  let silent = 0;
  function look(): void {
    const now = Atomics.load(counter, 0);
    silent = now === last ? silent + 1 : 0;
    last = now;
    if (silent === silentLooks) end();
    clock.after(lookMs, look);
  }
  clock.after(lookMs, look);
}

function endProcess(): void {
  // The log is written by the thread that hangs.
  writeSync(2, `${JSON.stringify({ level: 'fatal', module: 'watchdog', msg: 'The event loop was held for 30 seconds: the daemon is killed' })}\n`);
  process.kill(process.pid, 'SIGKILL');
}
