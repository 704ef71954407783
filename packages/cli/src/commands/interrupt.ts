import { exitCode } from '../exit-codes.ts';
import type { Io } from '../io.ts';

class Stopped extends Error {}

/** Runs something that Ctrl-C ends early: what it had printed by then stays, and the exit code tells. */
export async function untilInterrupted(io: Io, setExit: (code: number) => void, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
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
