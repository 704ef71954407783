import { existsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import type { RootConfig } from '../config-schema.ts';
import { findBrowser } from '../features/environment/browser/engine/chromium.ts';
import type { Clock } from '../kernel/clock.ts';
import { freeSpaceOf, lackOf } from '../kernel/disk-space.ts';
import { openJail } from '../kernel/jail.ts';

export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly hint?: string;
}

export const ok = (detail: string): Finding => ({ status: 'ok', detail });
export const warn = (detail: string, hint?: string): Finding => ({ status: 'warn', detail, ...(hint !== undefined && { hint }) });

/** Files are not stamped exactly, and clocks are corrected by fractions of a second. */
const clockSlackMs = 60_000;

/** Detects a clock that was wrong by files that were written later than now. */
export function checkClock(files: readonly string[], clock: Clock): Finding {
  const now = clock.now();
  const at = (ms: number) => Temporal.Instant.fromEpochMilliseconds(Math.round(ms)).toString({ smallestUnit: 'second' });
  const newer = files.find((file) => existsSync(file) && statSync(file).mtimeMs > now + clockSlackMs);
  if (newer === undefined) return ok(`${at(now)}, time zone ${Temporal.Now.timeZoneId()}`);
  return warn(
    `The clock says ${at(now)}, but ${newer} was written at ${at(statSync(newer).mtimeMs)}`,
    'Set the clock of this machine (for example with NTP): schedules and budgets follow it.',
  );
}

/** Checks the free space where the home folder is or will be. */
export async function checkDisk(home: string, minFreeBytes: number): Promise<Finding> {
  let folder = home;
  while (!existsSync(folder)) folder = dirname(folder);
  const free = await freeSpaceOf(folder);
  const megabytes = (bytes: number) => `${Math.floor(bytes / 1e6)} MB`;
  const detail = `${megabytes(free.bytes)} free for ${home}`;
  const lacking = lackOf(free);
  if (lacking === 'space') return { status: 'fail', detail: `The disk of ${folder} is full`, hint: 'Free some space: nothing can be stored.' };
  if (lacking === 'inodes')
    return {
      status: 'fail',
      detail: `${detail}, but the disk has nearly no inodes left: ${free.inodes} more files can be created`,
      hint: 'Delete files (see: df -i): nothing new can be stored.',
    };
  if (free.bytes >= minFreeBytes) return ok(detail);
  return {
    status: 'fail',
    detail: `${detail}, and storage.minFreeBytes asks for ${megabytes(minFreeBytes)}`,
    hint: 'Free some space: until then the daemon accepts no new work.',
  };
}

export async function checkPort({ gateway }: RootConfig, holder: string | undefined): Promise<Finding> {
  if (!gateway.enabled) return ok('no listener (gateway.enabled is false)');
  const where = `${gateway.host}:${gateway.port}`;
  if (holder !== undefined) return ok(`${where}, not tried while a daemon runs (${holder})`);
  const fault = await new Promise<Error | undefined>((done) => {
    const probe = createServer();
    probe.once('error', done);
    // Shared with concurrent checks; a listener of any other program still refuses it.
    probe.listen({ port: gateway.port, host: gateway.host, reusePort: process.platform === 'linux' }, () => probe.close(() => done(undefined)));
  });
  if (fault === undefined) return ok(`${where} is free`);
  return { status: 'fail', detail: `${where} cannot be used for listening: ${fault.message}`, hint: 'Stop what uses it, or set gateway.port.' };
}

export async function checkJail(clock: Clock): Promise<Finding> {
  await using jail = await openJail({ clock });
  if (jail.unavailable !== undefined) return warn('no jail for commands and MCP programs: they are refused', jail.unavailable);
  return ok(`bubblewrap; limits enforced by ${jail.bounds === 'cgroup' ? 'control groups' : 'limits of each process and a watcher'}`);
}

/** Checks what the tool `browser` needs. */
export function checkBrowser(browser: RootConfig['browser'] | undefined, hasJail: boolean): Finding {
  if (browser?.enabled === false) return ok('switched off (browser.enabled)');
  const found = findBrowser(browser?.program);
  if ('missing' in found) return warn('no browser for agents', found.missing);
  if (!existsSync(found.program))
    return warn(`${found.program} does not exist`, 'Name the program of a browser in browser.program, or remove the key.');
  return hasJail ? ok(found.program) : warn(`${found.program} is not started`, 'Browsers run in the jail, which is missing here.');
}
