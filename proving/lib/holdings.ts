import { join } from 'node:path';
import { type Daemon, logOf, pause } from './daemon.ts';

export interface Holdings {
  /** How late the event loop was since the last question. */
  readonly loopMs: { readonly p999: number; readonly max: number };
  readonly rssMb: number;
  /** Functions on the heap: a listener that is never removed is one. */
  readonly closures: number;
  /** Open sockets, files, threads and the like, by kind. */
  readonly handles: Readonly<Record<string, number>>;
}

/** Options of a daemon that `holdingsOf` can ask. */
export const holdingsHook = join(import.meta.dirname, 'holdings-watch.ts');

/** Returns what a daemon holds after garbage collection. */
export async function holdingsOf(daemon: Daemon): Promise<Holdings> {
  const reports = (): readonly string[] => daemon.stderr().match(/holdings: \{.*\}/g) ?? [];
  const before = reports().length;
  process.kill(daemon.pid, 'SIGUSR2');
  for (const until = performance.now() + 15_000; reports().length === before;) {
    if (performance.now() > until) throw new Error(`the daemon does not report what it holds\n${logOf(daemon)}`);
    await pause(10);
  }
  return JSON.parse(reports().at(-1)?.slice('holdings: '.length) ?? '');
}
