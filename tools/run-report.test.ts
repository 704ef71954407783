import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { readReport, reportVariable } from './run-report.ts';

const root = join(import.meta.dirname, '..');
// Where the files of the test find their packages.
const cache = join(root, 'node_modules/.cache');
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, 'run-report-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const pause = 'await new Promise((done) => setTimeout(done, 200));';
const files = {
  'vitest.config.ts': `export default { test: { exclude: [], include: ['*.test.ts'], pool: 'forks' } };`,
  'failed.test.ts': `import { expect, test } from 'vitest'; test('adds', () => expect(1 + 1, 'sum').toBe(3)); test('passes', () => {});`,
  'unhandled.test.ts': `import { test } from 'vitest'; test('passes', async () => { void Promise.reject(new Error('lost')); ${pause} });`,
  'crashed.test.ts': `import { test } from 'vitest'; test('is killed', async () => { process.kill(process.pid, 'SIGKILL'); ${pause} });`,
  'broken.test.ts': `throw new Error('cannot be loaded');`,
  'passed.test.ts': `import { test } from 'vitest'; test('passes', () => {});`,
};

test('names every file that fails a run: by a test, an unhandled error, a crash or its own code', async () => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const path = join(folder, 'reports/report.json');
  const parameters = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', `--reporter=${join(root, 'tools/run-report.ts')}`];
  const code = await new Promise((ended) => {
    execFile(process.execPath, parameters, { cwd: folder, env: { ...process.env, [reportVariable]: path } }, (error) => ended(error?.code ?? 0));
  });
  expect(code).toBe(1);
  const report = readReport(path);
  expect(report?.errors).toEqual([]);
  expect(Object.fromEntries(report?.files.map(({ file, failures }) => [file, failures]) ?? [])).toEqual({
    'failed.test.ts': ['adds: sum: expected 2 to be 3 // Object.is equality'],
    'unhandled.test.ts': ['unhandled Error: lost'],
    'crashed.test.ts': ['did not run to its end', expect.stringContaining('SIGKILL')],
    'broken.test.ts': ['cannot be loaded'],
    'passed.test.ts': [],
  });
});

test('a missing report is none', () => {
  expect(readReport(join(folder, 'none.json'))).toBeUndefined();
});
