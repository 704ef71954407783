import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { findCommand } from '../../../../tools/system-packages.mjs';

const home = mkdtempSync(join(tmpdir(), 'gatehouse-descriptors-'));
afterEach(() => rmSync(home, { recursive: true, force: true }));
const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);

test.skipIf(findCommand('bwrap') === undefined || findCommand('git') === undefined)(
  'without a free descriptor a command and git are refused, and work again when there is one',
  () => {
    const code = `
      import { closeSync, mkdirSync, openSync } from 'node:fs';
      import { systemClock } from ${url('../kernel/clock.ts')};
      import { openJail } from ${url('../kernel/jail.ts')};
      import { toAppError } from ${url('../kernel/app-error.ts')};
      import { createGit } from ${url('../features/environment/workspace/git/git.ts')};
      const home = process.argv[1];
      const uncaught = [];
      process.on('uncaughtException', (error) => uncaught.push(error.message));
      // Timers of the product do not keep a process alive.
      const alive = setInterval(() => {}, 1_000);
      const jail = await openJail({ clock: systemClock });
      const limits = { openFiles: 64, fileBytes: 1e6, cpuSeconds: 5, memoryBytes: 2e8, processes: 20 };
      const calls = {
        command: async () => {
          const started = jail.run({ argv: ['true'], cwd: '/', mounts: [], env: { PATH: '/usr/bin:/bin' }, network: false, limits });
          started.stdin.end();
          started.stdout.resume();
          started.stderr.resume();
          return (await started.ended).code;
        },
        git: async () => (await createGit({ clock: systemClock })({ gitDir: home, args: ['--version'] })).code,
      };
      const tryAll = async () => {
        const said = {};
        for (const [name, call] of Object.entries(calls)) said[name] = await call().catch((error) => toAppError(error).code);
        await new Promise((done) => setTimeout(done, 100));
        return said;
      };
      const before = await tryAll();
      const held = [];
      try { for (;;) held.push(openSync('/dev/null')); } catch {}
      const without = await tryAll();
      for (const fd of held) closeSync(fd);
      console.log(JSON.stringify({ before, without, after: await tryAll(), uncaught }));
      await jail[Symbol.asyncDispose]();
      clearInterval(alive);
    `;
    const limited = ['-c', 'ulimit -n 96; exec "$@"', 'sh', process.execPath, '--no-warnings', '--input-type=module', '-e', code, home];
    const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' });
    const works = { command: 0, git: 0 };
    expect(JSON.parse(stdout === '' ? JSON.stringify(stderr) : stdout)).toEqual({
      before: works,
      without: { command: 'unavailable', git: 'unavailable' },
      after: works,
      uncaught: [],
    });
  },
);
