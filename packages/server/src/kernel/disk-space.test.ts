import { createStepClock } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import { toAppError } from './app-error.ts';
import { isDiskFull } from './disk-full.ts';
import { createDiskWatch, diskFullError } from './disk-space.ts';

const settle = () => new Promise((done) => setImmediate(done));

it('refuses to write while less than the minimum is free on any disk, and no longer', async () => {
  const clock = createStepClock();
  const free: Record<string, number> = { '/a': 500e6, '/b': 500e6 };
  const told: (string | undefined)[] = [];
  using disk = createDiskWatch({
    folders: ['/a', '/b'],
    minFreeBytes: 100e6,
    clock,
    onChange: (shortage) => told.push(shortage),
    freeSpace: async (folder) => ({ bytes: free[folder] ?? 0 }),
  });
  await disk.look();
  disk.assertRoomToWrite();
  free['/b'] = 2.5e6;
  clock.advance(10_000);
  await settle();
  expect(disk.shortage()).toMatch(/^The disk of \/b is nearly full: 2\.5 MB are free, and storage\.minFreeBytes asks for 100 MB/);
  expect(() => disk.assertRoomToWrite()).toThrow(expect.objectContaining({ code: 'unavailable' }));
  free['/b'] = 2e6;
  await disk.look();
  free['/b'] = 100e6;
  clock.advance(10_000);
  await settle();
  disk.assertRoomToWrite();
  expect(told).toEqual([expect.stringContaining('/b'), undefined]);
});

it('takes a disk that tells nothing, and a minimum of 0, for enough', async () => {
  const deps = { folders: ['/a'], clock: createStepClock(), onChange: () => {} };
  using silent = createDiskWatch({ ...deps, minFreeBytes: 1, freeSpace: () => Promise.reject(new Error('ENOSYS')) });
  using off = createDiskWatch({ ...deps, minFreeBytes: 0, freeSpace: async () => ({ bytes: 0, inodes: 0 }) });
  await Promise.all([silent.look(), off.look()]);
  expect([silent.shortage(), off.shortage()]).toEqual([undefined, undefined]);
});

it('knows a full disk behind every error that means one', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  const wrapped = new Error('Cannot open', { cause: Object.assign(new Error('database or disk is full'), { errcode: 13 }) });
  for (const error of [full, wrapped, diskFullError('/home', full)]) {
    expect(isDiskFull(error)).toBe(true);
    expect(toAppError(error)).toMatchObject({ code: 'unavailable', message: expect.stringContaining('disk is full') });
  }
  expect(isDiskFull(new Error('EACCES'))).toBe(false);
});
