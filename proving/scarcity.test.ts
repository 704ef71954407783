import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { mountMissing, proveFewDescriptors, proveFullDisk, proveNoInodesAndReadOnly } from './scarcity.ts';

test.runIf(process.platform === 'linux')('more idle sockets than descriptors neither stop the daemon nor keep it from answering', async () => {
  expect(await proveFewDescriptors({ sockets: 150 })).toEqual({ wrong: [] });
});

test.runIf(mountMissing() === undefined && !onPostgres)(
  'a full disk is reported, reads continue, and the daemon recovers when space is free',
  async () => {
    expect(await proveFullDisk()).toEqual({ wrong: [] });
  },
);

test.runIf(mountMissing() === undefined)(
  'a disk without inodes and one that is mounted read-only are named by the start and by the doctor',
  async () => {
    expect(await proveNoInodesAndReadOnly()).toEqual({ wrong: [] });
  },
);
