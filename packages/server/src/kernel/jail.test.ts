import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findCommand } from '../../../../tools/system-packages.mjs';
import { createCgroups } from './jail-cgroup.ts';
import { systemClock } from './clock.ts';
import { type Jail, type JailEnd, jailPath, openJail } from './jail.ts';

const bubblewrap = findCommand('bwrap');
const limits = { memoryBytes: 192 * 1024 * 1024, processes: 30, cpuSeconds: 10, fileBytes: 4 * 1024 * 1024, openFiles: 256 };
const without = async () => undefined;

async function run(jail: Jail, argv: readonly [string, ...string[]], withinMs = 10_000): Promise<JailEnd & { readonly text: string }> {
  const started = jail.run({ argv, cwd: '/tmp', mounts: [], env: { PATH: jailPath }, network: false, limits });
  let text = '';
  for (const stream of [started.stdout, started.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => (text = (text + part).slice(0, 5000)));
  started.stdin.end();
  const cancel = systemClock.after(withinMs, () => started.kill());
  const end = await started.ended;
  cancel();
  return { ...end, text };
}

const running = (word: string) =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(word);
    } catch {
      return false;
    }
  });

describe.skipIf(bubblewrap === undefined)('a jail', () => {
  it('enforces its limits without control groups by limits per process and by polling', async () => {
    await using jail = await openJail({ clock: systemClock, cgroups: without });
    expect(jail).toMatchObject({ unavailable: undefined, bounds: 'rlimits' });
    expect(await run(jail, ['node', '-p', '1 + 1'])).toMatchObject({ code: 0, text: '2\n' });
    expect(await run(jail, ['sh', '-c', 'for i in $(seq 100); do sleep 60 & done; wait'])).toMatchObject({ bound: 'processes' });
    expect(await run(jail, ['node', '-e', 'const a=[];setInterval(()=>a.push(Buffer.alloc(2e7,1)),20)'])).toMatchObject({
      signal: 'SIGKILL',
      bound: 'memory',
    });
  });

  it.each(['cgroup', 'rlimits'])('counts memory that processes could share (%s)', async (bounds) => {
    await using jail = await openJail({ clock: systemClock, ...(bounds === 'rlimits' && { cgroups: without }) });
    const program = `import mmap, time
held = []
for _ in range(40):
    m = mmap.mmap(-1, 10 * 2**20)
    for at in range(0, len(m), 4096): m[at] = 1
    held.append(m)
    time.sleep(0.05)`;
    expect(await run(jail, ['/usr/bin/python3', '-c', program])).toMatchObject({ signal: 'SIGKILL', bound: 'memory' });
  });

  it.each(['cgroup', 'rlimits'])('that is killed while it is being made leaves nothing behind (%s)', async (bounds) => {
    await using jail = await openJail({ clock: systemClock, ...(bounds === 'rlimits' && { cgroups: without }) });
    const word = `begun-${process.pid}-${bounds}`;
    for (let afterMs = 0; afterMs < 60; afterMs += 1) {
      const started = jail.run({ argv: ['sleep', '60', word], cwd: '/', mounts: [], env: { PATH: jailPath }, network: false, limits });
      systemClock.after(afterMs % 20, () => started.kill());
      await started.ended;
    }
    await expect.poll(() => running(word)).toEqual([]);
  });

  it('leaves no control group behind', async ({ skip }) => {
    const own = `gatehouse-${process.pid}-`;
    const left = () => execFileSync('find', ['/sys/fs/cgroup', '-maxdepth', '5', '-name', `${own}*`], { encoding: 'utf8' });
    await using jail = await openJail({ clock: systemClock });
    skip(jail.bounds !== 'cgroup', 'control groups cannot be made here');
    const ended = run(jail, ['sleep', '2'], 1500);
    await expect.poll(left).toContain(own);
    expect(await ended).toMatchObject({ signal: 'SIGKILL' });
    expect(left()).toBe('');
  });

  it.each(['cgroup', 'rlimits'])(
    'ends with a daemon that is killed (%s)',
    async (bounds) => {
      const word = `sleeps-${process.pid}-${bounds}`;
      const module = (name: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, name)).href);
      const program = `
      const { openJail, jailPath } = await import(${module('jail.ts')});
      const { systemClock } = await import(${module('clock.ts')});
      const [word, bounds] = process.argv.slice(1);
      // The clock's timers keep no program alive.
      setInterval(() => {}, 1000);
      const jail = await openJail({ clock: systemClock, ...(bounds === 'rlimits' && { cgroups: async () => undefined }) });
      const script = '(setsid sh -c "sleep 60; echo $0" "$0" &) ; sleep 61; echo "$0"';
      jail.run({ argv: ['sh', '-c', script, word.split('').reverse().join('')], cwd: '/', mounts: [], env: { PATH: jailPath }, network: false, limits: ${JSON.stringify(limits)} });`;
      const daemon = spawn(process.execPath, ['--input-type=module', '-e', program, word, bounds], { stdio: ['ignore', 'ignore', 'inherit'] });
      const reversed = word.split('').toReversed().join('');
      await expect.poll(() => running(reversed).length, { timeout: 20_000 }).toBeGreaterThan(2);
      daemon.kill('SIGKILL');
      await expect.poll(() => running(reversed)).toEqual([]);
    },
    30_000,
  );

  it('that is disposed kills what still runs in it', async () => {
    const jail = await openJail({ clock: systemClock });
    const started = jail.run({ argv: ['sleep', '60'], cwd: '/', mounts: [], env: { PATH: jailPath }, network: false, limits });
    await jail[Symbol.asyncDispose]();
    expect(await started.ended).toMatchObject({ signal: 'SIGKILL' });
  });
});

describe('control groups', () => {
  it('of version 2 are one folder with both limits', () => {
    const folder = mkdtempSync(join(tmpdir(), "gatehouse's-"));
    try {
      const script = createCgroups({ pids: folder, memory: folder, version: 2 }).joining(limits);
      const pid = execFileSync('/bin/sh', ['-c', `${script}\necho $$`], { encoding: 'utf8' }).trim();
      const read = (file: string) => readFileSync(join(folder, `gatehouse-${process.pid}-${pid}`, file), 'utf8').trim();
      expect([read('pids.max'), read('memory.max'), read('cgroup.procs')]).toEqual(['32', String(limits.memoryBytes), pid]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('that cannot be joined keep the program from running', () => {
    const script = createCgroups({ pids: '/nonexistent', memory: '/nonexistent', version: 1 }).joining(limits);
    expect(() => execFileSync('/bin/sh', ['-c', `${script}\necho ran`], { stdio: 'pipe' })).toThrow(/status 125|failed/);
  });
});
