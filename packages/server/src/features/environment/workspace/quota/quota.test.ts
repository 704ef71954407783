import { fixed } from '../../../../kernel/config/live.ts';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findCommand } from '../../../../../../../tools/system-packages.mjs';
import { AppError } from '../../../../kernel/app-error.ts';
import { systemClock } from '../../../../kernel/clock.ts';
import { jailPath, openJail } from '../../../../kernel/jail.ts';
import { silentLog } from '../../../../kernel/log.ts';
import { WorkspacesConfig } from '../config.ts';
import { countFiles } from './count-files.ts';
import { createQuota, type QuotaDeps } from './quota.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-quota-'));
});
afterEach(() => {
  execFileSync('chmod', ['-R', 'u+rwx', dir]);
  rmSync(dir, { recursive: true, force: true });
});

const mebibyte = 1024 * 1024;
const diskWith = (shortage: () => string | undefined): QuotaDeps['disk'] => ({
  check: async () => {},
  shortage,
  lacking: () => (shortage() === undefined ? undefined : 'space'),
  assertCanWrite() {
    const why = shortage();
    if (why !== undefined) throw new AppError('unavailable', why);
  },
});
const roomy = diskWith(() => undefined);
const make = (config: object = {}, disk = roomy) =>
  createQuota({ clock: systemClock, log: silentLog, config: fixed(WorkspacesConfig().parse(config)), disk });
const count = (more: object = {}) => countFiles({ root: dir, maxFiles: 1000, draftsBeforeMs: 0, ...more });

describe('the usage of a workspace', () => {
  it('includes everything in it, hidden folders too, whatever its name, and nothing behind a link', () => {
    mkdirSync(join(dir, '.gatehouse/offload'), { recursive: true });
    writeFileSync(join(dir, '.gatehouse/offload/a.txt'), Buffer.alloc(mebibyte, 1));
    mkdirSync(join(dir, 'data'));
    writeFileSync(Buffer.concat([Buffer.from(join(dir, 'data/')), Buffer.from([0xff, 0x1b])]), Buffer.alloc(2 * mebibyte, 1));
    writeFileSync(join(dir, 'data/sparse'), '');
    truncateSync(join(dir, 'data/sparse'), 1e9);
    execFileSync('ln', [join(dir, '.gatehouse/offload/a.txt'), join(dir, 'data/second-name')]);
    symlinkSync('/usr', join(dir, 'data/usr'));
    const usage = count();
    expect(usage).toMatchObject({ files: 8, more: false, special: [], removed: [] });
    expect(usage.bytes / mebibyte).toBeCloseTo(3, 0);
    expect(usage.largest[0]).toMatchObject({ path: 'data' });
    expect(usage).not.toHaveProperty('uncounted');
    expect(countFiles({ root: join(dir, 'missing'), maxFiles: 10, draftsBeforeMs: 0 })).toMatchObject({ files: 0, bytes: 0 });
  });

  it('is counted up to a limit, and names folders that cannot be counted', () => {
    for (let index = 0; index < 20; index += 1) writeFileSync(join(dir, `${index}`), '');
    expect(count({ maxFiles: 10 })).toMatchObject({ files: 10, more: true });
    execFileSync('sh', ['-c', 'for i in $(seq 150); do mkdir dddddddddd; cd dddddddddd; done; : > file'], { cwd: dir });
    expect(count().uncounted).toMatch(/^d+(\/d+){100}$/);
  });

  it('excludes drafts that a crash left, and special files that git would read', () => {
    const draft = `.${'0a'.repeat(12)}.tmp`;
    mkdirSync(join(dir, 'data'));
    for (const name of [draft, `data/${draft}`, 'data/.0a.tmp', `data/.${'1b'.repeat(12)}.tmp`]) writeFileSync(join(dir, name), 'half');
    for (const name of [draft, `data/${draft}`, 'data/.0a.tmp']) utimesSync(join(dir, name), 1, 1);
    execFileSync(
      'mkfifo',
      ['.gitignore', 'data/.gitattributes', 'data/pipe'].map((name) => join(dir, name)),
    );
    expect(count({ draftsBeforeMs: 10_000 })).toMatchObject({
      removed: [draft, `data/${draft}`],
      special: expect.arrayContaining(['.gitignore', 'data/pipe']),
    });
    expect(count({ draftsBeforeMs: 10_000, forGit: true })).toMatchObject({ special: ['data/pipe'] });
    expect(readdirSync(join(dir, 'data')).toSorted()).toEqual(['.0a.tmp', `.${'1b'.repeat(12)}.tmp`, 'pipe']);
  });
});

describe('a quota', () => {
  it('refuses writes that do not fit, and names what uses the space', async () => {
    await using quota = make({ quotaMb: 2, quotaFiles: 100 });
    await quota.assertCapacity(dir, { bytes: mebibyte });
    await expect(quota.assertCapacity(dir, { bytes: 2 * mebibyte + 1 })).rejects.toMatchObject({ code: 'precondition_failed' });
    mkdirSync(join(dir, 'data'));
    writeFileSync(join(dir, 'data/large'), Buffer.alloc(3 * mebibyte, 1));
    // Counted a moment ago, but this write may not fit: it is counted again.
    await expect(quota.assertCapacity(dir, { bytes: 2 * mebibyte + 1 })).rejects.toMatchObject({
      message: expect.stringMatching(
        /^The workspace is full: it holds 3\.\d MiB in 2 files, and 2097153 bytes more.*quotaMb is 2.*Most of it: "data" 3\.\d MiB, "data\/large" 3\.0 MiB\. Delete .*"rm"/,
      ),
    });
    rmSync(join(dir, 'data/large'));
    await quota.assertCapacity(dir, { bytes: mebibyte });
  });

  it('limits the number of files, including those that the daemon writes between two counts', async () => {
    await using quota = make({ quotaFiles: 100 });
    for (let index = 0; index < 99; index += 1) writeFileSync(join(dir, `${index}`), '');
    await quota.assertCapacity(dir, { files: 1 });
    writeFileSync(join(dir, 'hundredth'), '');
    await expect(quota.assertCapacity(dir, { files: 1 })).rejects.toMatchObject({ message: expect.stringContaining('100 files') });
  });

  it('accepts nothing while the disk is nearly full', async () => {
    let shortage: string | undefined = 'The disk is nearly full';
    await using quota = make(
      {},
      diskWith(() => shortage),
    );
    await expect(quota.assertCapacity(dir)).rejects.toMatchObject({ code: 'unavailable', message: 'The disk is nearly full' });
    shortage = undefined;
    await quota.assertCapacity(dir);
  });

  it.skipIf(process.getuid?.() === 0)('counts a folder that it cannot read as full', async () => {
    await using quota = make();
    mkdirSync(join(dir, 'closed'));
    chmodSync(join(dir, 'closed'), 0);
    await expect(quota.assertCapacity(dir)).rejects.toMatchObject({ message: expect.stringContaining('"closed" is closed to the daemon') });
  });

  it.skipIf(findCommand('bwrap') === undefined)('stops a command that exceeds it or fills the disk, and leaves others alone', async () => {
    await using jail = await openJail({ clock: systemClock });
    let shortage: string | undefined;
    await using quota = make(
      { quotaMb: 1 },
      diskWith(() => shortage),
    );
    const limits = { memoryBytes: 256 * mebibyte, processes: 30, cpuSeconds: 10, fileBytes: 4 * mebibyte, openFiles: 256 };
    const start = (script: string, from = dir) => {
      const mounts = [{ from, to: '/workspace', writable: true }];
      const spec = {
        argv: ['sh', '-c', script] as [string, ...string[]],
        cwd: '/workspace',
        mounts,
        env: { PATH: jailPath },
        network: false,
        limits,
      };
      const started = quota.watched(jail, from).run(spec);
      started.stdin.end();
      return started;
    };
    const other = join(dir, '../', `${dir.split('/').at(-1)}-other`);
    mkdirSync(other);
    try {
      const patient = start('sleep 30', other);
      expect(await start('for i in 1 2 3; do head -c 900k /dev/zero > f$i; done; (setsid sleep 60 &); sleep 60').ended).toMatchObject({
        signal: 'SIGKILL',
        bound: 'workspace',
      });
      await expect(quota.assertCapacity(dir, { files: 1 })).rejects.toMatchObject({ code: 'precondition_failed' });
      shortage = 'The disk is nearly full';
      expect(await patient.ended).toMatchObject({ signal: 'SIGKILL', bound: 'disk' });
      expect(existsSync(join(dir, 'f3'))).toBe(true);
    } finally {
      rmSync(other, { recursive: true });
    }
  });
});
