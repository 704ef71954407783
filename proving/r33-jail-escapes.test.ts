import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { proveJailEscapes } from './r33-jail-escapes.ts';

const bubblewrap = findCommand('bwrap');

test.skipIf(bubblewrap === undefined)('a command reaches nothing outside of its jail and uses no more than its limits', async () => {
  const report = await proveJailEscapes({
    // On a machine that does other work too; a program that nothing ends has no end at all.
    graceMs: 20_000,
    only: [
      'reads by path',
      'reads through a link',
      'changes a file of the prompt',
      'plants a skill',
      'swaps a folder for a link',
      'creates a namespace',
      'calls what no namespace covers',
      'calls by other tables',
      'sets the handler of crashes',
      'ends all it can',
      'looks into another process',
      'connects to this machine',
      'connects to a socket file',
      'forks without end',
      'takes all memory',
      'holds on to its output',
      'leaves something behind',
    ],
  });
  expect(report.wrong).toEqual([]);
  expect(report.programs).toBe(17);
});
