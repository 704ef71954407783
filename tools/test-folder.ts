import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';

/** Least memory of a machine that can spare half of it for files. */
const leastBytes = 8 * 1024 ** 3;

export interface TestFolder extends Disposable {
  readonly path: string;
  /** Its files are in memory. */
  readonly inMemory: boolean;
}

/**
 * Creates the folder that holds the temporary files of a test run, and empties it when disposed of. Where this user may mount one, it is in
 * memory: thousands of small databases sync each commit, and what a test kills are processes, after which the files of both kinds are the same.
 */
export function openTestFolder(): TestFolder {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-tests-'));
  const inMemory = totalmem() >= leastBytes && run('mount', '-t', 'tmpfs', '-o', 'size=50%,mode=1777', 'gatehouse-tests', path);
  return {
    path,
    inMemory,
    [Symbol.dispose]() {
      // Lazily: a process that a test left behind may still have its folder there.
      if (inMemory) run('umount', '--lazy', path);
      rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

function run(program: string, ...args: readonly string[]): boolean {
  return process.platform === 'linux' && spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}
