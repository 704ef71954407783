import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findProgram } from '../find-program.ts';

const isJailed = process.platform === 'linux' && findProgram('bwrap') !== undefined && findProgram('prlimit') !== undefined;

let folder: string;
let daemon: ChildProcess;
let otherPid: number;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-watchdog-'));
  daemon = spawn(process.execPath, [join(import.meta.dirname, 'testing', 'watched-process.ts'), folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line]: unknown[] = await once(daemon.stdout ?? daemon, 'data');
  otherPid = Number(String(line));
  await expect.poll(() => written()).toBeGreaterThan(1);
});
afterEach(async () => {
  daemon.kill('SIGKILL');
  await expect.poll(() => isRunning(otherPid)).toBe(false);
  rmSync(folder, { recursive: true, force: true });
});

function written(): number {
  return statSync(join(folder, 'written'), { throwIfNoEntry: false })?.size ?? 0;
}

function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Whether the command writes no more; looked at over several of its pauses. */
async function isQuiet(): Promise<boolean> {
  const before = written();
  await new Promise((resolve) => setTimeout(resolve, 300));
  return written() === before;
}

test.runIf(isJailed)('kills what a frozen daemon has started once its lease ends, and not before', async () => {
  expect(await isQuiet()).toBe(false);
  daemon.stdin?.write('1500');
  await once(daemon.stdout ?? daemon, 'data');
  daemon.kill('SIGSTOP');
  expect(await isQuiet()).toBe(false);
  await expect.poll(() => isRunning(otherPid)).toBe(false);
  expect(await isQuiet()).toBe(true);
  expect(isRunning(daemon.pid ?? 0)).toBe(true);
});

test.runIf(isJailed)('kills what a dead daemon left behind', async () => {
  expect(isRunning(otherPid)).toBe(true);
  daemon.kill('SIGKILL');
  await expect.poll(() => isRunning(otherPid)).toBe(false);
  expect(await isQuiet()).toBe(true);
});
