import { write, writeSync } from 'node:fs';

/** Destination of finished lines. */
export interface LogSink {
  write(line: string): void;
  /** Writes waiting lines at once: before a person is shown something, and in the last moments of the process. */
  flush(): void;
}

/** More than this waiting means that nobody reads: further lines are counted and dropped. */
const maxWaiting = 4 * 1024 * 1024;
const batchLength = 32 * 1024;
const delayMs = 20;
/** How long the last flush waits for a reader that does not read. */
const maxFlushMs = 1000;

/**
 * Collects lines and writes many with one call, off the event loop: a line for each request must not cost a system call
 * each, and a slow terminal or pipe must not block the daemon. `onDropped` gets the number of lost lines.
 */
export function createFileSink(fd: number, onDropped: (count: number) => void): LogSink {
  let waiting: string[] = [];
  let waitingLength = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let inFlight: Buffer | undefined;

  function take(): Buffer {
    const batch = Buffer.from(waiting.join(''));
    waiting = [];
    waitingLength = 0;
    return batch;
  }

  function later(run: () => void): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      run();
    }, delayMs).unref();
  }

  function begin(): void {
    if (inFlight !== undefined || waiting.length === 0) return;
    inFlight = take();
    reportDropped();
    proceed();
  }

  /** Called when there is space again. */
  function reportDropped(): void {
    if (dropped === 0) return;
    const count = dropped;
    dropped = 0;
    onDropped(count);
  }

  function proceed(): void {
    if (inFlight === undefined) return;
    write(fd, inFlight, (error, written) => {
      if (inFlight === undefined) return;
      if (error?.code === 'EAGAIN') {
        later(proceed);
        return;
      }
      // Nobody can be notified that the log is gone (EPIPE, a full disk); the daemon continues.
      inFlight = error === null && written < inFlight.length ? inFlight.subarray(written) : undefined;
      if (inFlight === undefined) begin();
      else proceed();
    });
  }

  return {
    write(line) {
      if (waitingLength + line.length > maxWaiting) {
        dropped++;
        return;
      }
      waiting.push(line);
      waitingLength += line.length;
      if (waitingLength >= batchLength) begin();
      else later(begin);
    },
    flush() {
      writeNow(fd, take());
      reportDropped();
      writeNow(fd, take());
    },
  };
}

/** Gives up on any error but a full pipe, and on that after a while: a dead reader must not keep the process alive. */
function writeNow(fd: number, batch: Buffer): void {
  let rest = batch;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let waited = 0; rest.length > 0 && waited < maxFlushMs;) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return;
      Atomics.wait(pause, 0, 0, 10);
      waited += 10;
    }
  }
}
