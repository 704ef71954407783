import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findCommand, systemPackages, wouldRemove } from './system-packages.mjs';

const root = join(import.meta.dirname, '..');

test('finds programs, also those of administrators outside the path', () => {
  const path = process.env['PATH'];
  try {
    expect(findCommand('sh')).toMatch(/\/sh$/);
    expect(findCommand('no-such-program-anywhere')).toBeUndefined();
    process.env['PATH'] = '';
    expect(findCommand('no-such-program-anywhere')).toBeUndefined();
    expect(findCommand('fsck')).toMatch(/sbin\/fsck$/);
  } finally {
    process.env['PATH'] = path;
  }
});

test('does not replace a mail server that is installed', () => {
  const findAll = (command: string) => `/usr/sbin/${command}`;
  expect(systemPackages.filter((entry) => wouldRemove(entry, findAll)).map((entry) => entry.package)).toEqual(['exim4-daemon-light']);
  expect(systemPackages.filter((entry) => wouldRemove(entry, () => undefined))).toEqual([]);
});

test.each(systemPackages)('$package is needed by a suite that looks for it', ({ command, neededBy }) => {
  const file = join(root, neededBy);
  expect(existsSync(file)).toBe(true);
  expect(readFileSync(file, 'utf8')).toContain(command);
});
