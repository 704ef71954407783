import { type Daemon, logOf, pause } from './daemon.ts';

/** Asks a daemon with the hook `main-cpu-watch.ts` for the longest work of its main thread since the last time, and its peak of memory. */
export async function readMain(daemon: Daemon): Promise<{ readonly longestMs: number; readonly peakMb: number }> {
  const reports = (): readonly string[] => daemon.stderr().match(/main thread: \{.*\}/g) ?? [];
  const before = reports().length;
  process.kill(daemon.pid, 'SIGUSR2');
  for (const until = performance.now() + 30_000; reports().length === before;) {
    if (performance.now() > until) throw new Error(`the daemon does not report\n${logOf(daemon)}`);
    await pause(10);
  }
  return JSON.parse(reports().at(-1)?.slice('main thread: '.length) ?? '');
}
