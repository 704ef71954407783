import { exitCode, type SetExit } from '../exit-codes.ts';
import type { Io } from '../io.ts';

class Stopped extends Error {}

/** Runs work that Ctrl-C stops: the output so far stays, and the exit code reports the interruption. */
export async function untilInterrupted(io: Io, setExit: SetExit, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const release = io.onInterrupt(() => controller.abort(new Stopped()));
  try {
    await run(controller.signal);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    setExit(exitCode.interrupted);
  } finally {
    release();
  }
}
