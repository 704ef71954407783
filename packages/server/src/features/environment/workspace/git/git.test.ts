import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../../kernel/clock.ts';
import { createGit } from './git.ts';
import { Repository } from './repository.ts';

describe('the program git', () => {
  it('is reported when it is missing', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'gatehouse-no-git-'));
    await expect(createGit({ clock: systemClock, path: empty })({ gitDir: empty, args: ['version'] })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('"git" is not installed'),
    });
    await rm(empty, { recursive: true });
  });

  it('is stopped with its helpers on a timeout, too much output, or cancellation', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-slow-git-'));
    writeFileSync(join(folder, 'git'), `#!/bin/sh\ncase "$*" in *endless*) yes;; *) sleep 60 & echo $! > ${folder}/pid; wait;; esac\n`, {
      mode: 0o755,
    });
    const timers: (() => void)[] = [];
    const clock = { ...systemClock, after: (_ms: number, run: () => void) => (timers.push(run), () => {}) };
    const slow = createGit({ clock, path: `${folder}:/usr/bin:/bin` });
    const running = slow({ gitDir: folder, args: ['slow'] });
    await expect.poll(() => existsSync(join(folder, 'pid')) && statSync(join(folder, 'pid')).size > 0).toBe(true);
    timers[0]?.();
    await expect(running).rejects.toMatchObject({ code: 'timeout' });
    const helper = Number(readFileSync(join(folder, 'pid'), 'utf8'));
    await expect.poll(() => isAlive(helper)).toBe(false);
    expect(await slow({ gitDir: folder, args: ['endless'], maxBytes: 1000 })).toMatchObject({
      cut: true,
      stdout: expect.objectContaining({ length: 1000 }),
    });
    await expect(slow({ gitDir: folder, args: ['slow'], signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'cancelled' });
    await rm(folder, { recursive: true });
  });

  it.runIf(process.platform === 'linux')(
    'is ended when it waits at a pipe; the others of the workspace do not wait for long, and the answer names the pipe',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'gatehouse-stalled-git-'));
      const gitDir = join(folder, '.git-agent');
      await mkdir(gitDir);
      await mkdir(join(folder, 'agent'));
      writeFileSync(join(gitDir, 'HEAD'), 'ref: refs/heads/main\n');
      execFileSync('mkfifo', [join(folder, 'agent/pipe')]);
      writeFileSync(join(folder, 'git'), `#!/bin/sh\nread line < ${folder}/agent/pipe\n`, { mode: 0o755 });
      // Other timers fire at once; that of 30 s never does.
      const clock = { ...systemClock, after: (ms: number, run: () => void) => systemClock.after(ms > 1000 ? 1e6 : 5, run) };
      const repository = new Repository({
        git: createGit({ clock, path: `${folder}:/usr/bin:/bin` }),
        clock,
        workspaceDir: join(folder, 'agent'),
        clear: async () => ({ special: ['pipe'] }),
      });
      await expect(repository.status()).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('blocks git: "pipe". Delete it'),
      });
      await rm(folder, { recursive: true });
    },
  );
});

function isAlive(pid: number): boolean {
  try {
    // An unreaped zombie no longer runs.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
