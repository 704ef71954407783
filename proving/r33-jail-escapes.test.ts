import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { proveJailEscapes } from './r33-jail-escapes.ts';

const bubblewrap = findCommand('bwrap');

test.skipIf(bubblewrap === undefined)('a command reaches nothing outside of its jail and takes no more than it is given', async () => {
  const report = await proveJailEscapes({
    only: [
      'reads by path',
      'reads through a link',
      'changes a file of the prompt',
      'plants a skill',
      'swaps a folder for a link',
      'takes a namespace of its own',
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

test.skipIf(bubblewrap === undefined)('a build that runs commands without the jail is caught', async () => {
  const { wrong } = await proveJailEscapes({
    broken: 'no-jail',
    only: ['reads by path', 'writes by path', 'changes a file of the prompt', 'ends another process', 'connects to this machine'],
  });
  for (const what of ['read what is outside', 'written effect', 'changed a file of the prompt', 'ended another process', 'made 1 connections'])
    expect(wrong.join('\n')).toContain(what);
});

test.skipIf(bubblewrap === undefined)('a build without a filter of system calls is caught', async () => {
  const { wrong } = await proveJailEscapes({ broken: 'no-seccomp', only: ['calls what no namespace covers', 'calls by other tables'] });
  expect(wrong.join('\n')).toMatch(/calls what no namespace covers: it was given/);
  expect(wrong.join('\n')).toMatch(/calls by other tables: it was given a namespace by clone3/);
});
