import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openTestFolder } from './test-folder.ts';

test('the folder of a test run holds files until its end, and leaves nothing', () => {
  let path: string;
  let file: string;
  {
    using folder = openTestFolder();
    path = folder.path;
    file = join(path, 'database');
    writeFileSync(file, 'rows');
    expect(readFileSync(file, 'utf8')).toBe('rows');
    if (folder.inMemory) expect(readFileSync('/proc/mounts', 'utf8')).toContain(` ${path} tmpfs `);
  }
  expect(existsSync(path)).toBe(false);
  expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(path);
});
