import { dirname } from 'node:path';
import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { Log } from '../kernel/log.ts';
import { watchFolder } from '../kernel/watch-folder.ts';
import { expiryNotice, readTls, type TlsConfig, type TlsFiles, tlsPaths } from './tls.ts';

/** A renewed pair is written file by file: changes within this time are read as one. */
const settleMs = 300;
/** Finds changes without notifications: links to other folders, network file systems. */
const pollMs = 60_000;
const dayMs = 86_400_000;

/**
 * Watches the files of `gateway.tls` and passes each new set that is valid to `apply`; a broken one is announced
 * and the previous one stays in use. Announces a certificate that expires within 14 days, once a day.
 */
export function followTls(deps: {
  readonly config: TlsConfig;
  readonly baseDir: string;
  readonly files: TlsFiles;
  readonly apply: (files: TlsFiles) => void;
  readonly clock: Clock;
  readonly bus: EventBus;
  readonly log: Log;
}): Disposable {
  const { config, baseDir, clock, bus, log } = deps;
  let current = deps.files;
  let complaint: string | undefined;
  let announcedDay: number | undefined;
  let cancelSettle: (() => void) | undefined;
  let cancelPoll = clock.after(pollMs, poll);

  function warn(message: string): void {
    log.warn({}, message);
    bus.emit('security:warn', { category: 'tls', message, timestamp: clock.now() });
  }

  function reload(): void {
    try {
      const found = readTls(config, baseDir, clock.now());
      complaint = undefined;
      if (found.cert === current.cert && found.key === current.key && found.ca === current.ca) return;
      deps.apply(found);
      current = found;
      log.info({ expiresAt: new Date(found.expiresAtMs).toISOString() }, 'The TLS files were reloaded');
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      // Announced once, not at every check.
      if (reason === complaint) return;
      complaint = reason;
      warn(`The TLS files can no longer be used; the previous ones stay in use: ${reason}`);
    }
  }

  function announceExpiry(): void {
    const notice = expiryNotice(current, clock.now());
    const day = Math.floor(clock.now() / dayMs);
    if (notice === undefined || announcedDay === day) return;
    announcedDay = day;
    warn(notice);
  }

  function poll(): void {
    reload();
    announceExpiry();
    cancelPoll = clock.after(pollMs, poll);
  }

  function onNotice(): void {
    cancelSettle?.();
    cancelSettle = clock.after(settleMs, reload);
  }

  announceExpiry();
  const folders = new Set(Object.values(tlsPaths(config, baseDir)).map((path) => dirname(path)));
  const watchers = [...folders].map((folder) => watchFolder(folder, onNotice));
  return {
    [Symbol.dispose]() {
      cancelPoll();
      cancelSettle?.();
      for (const watcher of watchers) watcher[Symbol.dispose]();
    },
  };
}
