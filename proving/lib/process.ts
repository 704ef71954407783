import { execFileSync } from 'node:child_process';
import type { Daemon } from './daemon.ts';
import { rpcCall } from './rpc.ts';

/** Resident memory of a process, in MiB. */
export function rssMb(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024;
}

/**
 * Returns what is wrong with a daemon after an attack: it is gone, another process answers, or it holds more than `maxGrownMb` above
 * `beforeMb`. Empty when nothing is.
 */
export async function ailmentOf(daemon: Daemon, beforeMb: number, maxGrownMb: number): Promise<string> {
  if (daemon.child.exitCode !== null || daemon.child.signalCode !== null) return `the daemon is gone: ${daemon.stderr().slice(-500)}`;
  const status = (await rpcCall({ port: daemon.port, token: daemon.token }, 'gateway.status', {})) as { pid: number };
  if (status.pid !== daemon.pid) return 'another process answers';
  const grown = Math.round(rssMb(daemon.pid) - beforeMb);
  return grown > maxGrownMb ? `it holds ${grown} MiB more than before` : '';
}
