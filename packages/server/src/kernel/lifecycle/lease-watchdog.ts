import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';

export interface LeaseWatchdog extends AsyncDisposable {
  /** The programs of this daemon are killed at this time of `machineUptimeMs`, unless a later one is passed before. */
  mayRunUntil(uptimeMs: number): void;
}

const restartMs = 500;

/**
 * Starts the process that kills what this daemon has started when its lease is not renewed in time: it does so while the daemon is
 * frozen or cut off from the database, and after the daemon was killed. Started again when it ends.
 */
export function startLeaseWatchdog({ clock, log }: { readonly clock: Clock; readonly log: Log }): LeaseWatchdog {
  let closing = false;
  let last: string | undefined;
  let cancel = () => {};
  let child = start();

  function start() {
    // In a separate session: Ctrl-C of a terminal must not end it before the daemon.
    const started = spawn(process.execPath, ['--max-old-space-size=16', fileURLToPath(processUrl()), String(process.pid)], {
      env: {},
      detached: true,
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    started.stdin.on('error', () => {});
    started.on('error', (error) => log.error({ err: error }, 'Failed to start the watchdog of the lease'));
    started.on('close', (code, signal) => {
      if (closing) return;
      log.error({ code, signal }, 'The watchdog of the lease ended: starting it again');
      cancel = clock.after(restartMs, () => {
        child = start();
      });
    });
    if (last !== undefined) started.stdin.write(`${last}\n`);
    return started;
  }

  return {
    mayRunUntil(uptimeMs) {
      last = String(uptimeMs);
      child.stdin.write(`${last}\n`);
    },
    async [Symbol.asyncDispose]() {
      closing = true;
      cancel();
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      const ended = new Promise((resolve) => child.once('close', resolve));
      child.stdin.end('end\n');
      await ended;
    },
  };
}

/** Returns the address of the program; in the bundle it is next to the server. */
function processUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './lease-watchdog-process.ts' : './lease-watchdog-process.js', import.meta.url);
}
