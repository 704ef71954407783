import { createStepClock } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { toAppError } from './app-error.ts';
import { isDiskFull } from './disk-full.ts';
import { createDiskWatch, diskFullError } from './disk-space.ts';

const settle = () => new Promise((done) => setImmediate(done));

it('refuses to write only while less than the minimum is free on any disk', async () => {
  const clock = createStepClock();
  const free: Record<string, number> = { '/a': 500e6, '/b': 500e6 };
  const changes: (string | undefined)[] = [];
  using disk = createDiskWatch({
    folders: ['/a', '/b'],
    minFreeBytes: 100e6,
    clock,
    onChange: (shortage) => changes.push(shortage),
    freeSpace: async (folder) => ({ bytes: free[folder] ?? 0 }),
  });
  await disk.check();
  disk.assertCanWrite();
  free['/b'] = 2.5e6;
  clock.advance(10_000);
  await settle();
  expect(disk.shortage()).toMatch(/^The disk of \/b is nearly full: 2\.5 MB are free, and storage\.minFreeBytes asks for 100 MB/);
  expect(() => disk.assertCanWrite()).toThrow(expect.objectContaining({ code: 'unavailable' }));
  free['/b'] = 2e6;
  await disk.check();
  free['/b'] = 100e6;
  clock.advance(10_000);
  await settle();
  disk.assertCanWrite();
  expect(changes).toEqual([expect.stringContaining('/b'), undefined]);
});

it('accepts a disk that does not report its free space, and a minimum of 0', async () => {
  const deps = { folders: ['/a'], clock: createStepClock(), onChange: () => {} };
  using silent = createDiskWatch({ ...deps, minFreeBytes: 1, freeSpace: () => Promise.reject(new Error('ENOSYS')) });
  using off = createDiskWatch({ ...deps, minFreeBytes: 0, freeSpace: async () => ({ bytes: 0, inodes: 0 }) });
  await Promise.all([silent.check(), off.check()]);
  expect([silent.shortage(), off.shortage()]).toEqual([undefined, undefined]);
});

it('recognizes every error that means a full disk', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  const wrapped = new Error('Cannot open', { cause: Object.assign(new Error('database or disk is full'), { errcode: 13 }) });
  for (const error of [full, wrapped, diskFullError('/home', full)]) {
    expect(isDiskFull(error)).toBe(true);
    expect(toAppError(error)).toMatchObject({ code: 'unavailable', message: expect.stringContaining('disk is full') });
  }
  expect(isDiskFull(new Error('EACCES'))).toBe(false);
});
