import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { proveTerminalDrives } from './terminal-drives.ts';

test.skipIf(findCommand('bwrap') === undefined)('a scripted model drives a Python session to its end', async () => {
  const { wrong } = await proveTerminalDrives({ rounds: 1, programs: ['python3'] });
  expect(wrong).toEqual([]);
});
