import { join } from 'node:path';
import { type Daemon, logOf, pause } from './daemon.ts';

export interface Holdings {
  /** How late the event loop was since it was asked before. */
  readonly loopMs: { readonly p999: number; readonly max: number };
  readonly rssMb: number;
  /** Functions on the heap: a listener that nobody takes away is one. */
  readonly closures: number;
  /** Open sockets, files and the like. */
  readonly handles: number;
}

/** What a daemon is given so that `holdingsOf` can ask it. */
export const holdingsHook = join(import.meta.dirname, 'holdings-watch.ts');

/** What a daemon holds when its garbage is collected. */
export async function holdingsOf(daemon: Daemon): Promise<Holdings> {
  const told = (): readonly string[] => daemon.stderr().match(/holdings: \{.*\}/g) ?? [];
  const before = told().length;
  process.kill(daemon.pid, 'SIGUSR2');
  for (const until = performance.now() + 15_000; told().length === before;) {
    if (performance.now() > until) throw new Error(`the daemon does not tell what it holds\n${logOf(daemon)}`);
    await pause(10);
  }
  return JSON.parse(told().at(-1)?.slice('holdings: '.length) ?? '');
}
