import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { judgeTitle } from './titles.ts';

test.each([
  'cron: retry acknowledged work while the breaker is open',
  'Release 0.2.0',
  'server, cli: pass the signal on',
  'proving: speed up the short forms',
  'Revert "cron: retry acknowledged work"',
])('accepts %j', (title) => expect(judgeTitle(title)).toBeUndefined());

test.each([
  ['cron: retries work', /"retries" is not an imperative/],
  ['cron: retried work', /not an imperative/],
  ['Retrying work', /not an imperative/],
  ['cron: the work is retried', /not an imperative/],
  ['cron: retry work.', /full stop/],
  [`cron: ${'x'.repeat(67)}`, /73 characters/],
])('refuses %j', (title, fault) => expect(judgeTitle(title)).toMatch(fault));

test('the hook refuses a message, and a clone without the history passes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-titles-'));
  try {
    const run = (...args: readonly string[]) =>
      spawnSync(process.execPath, [join(import.meta.dirname, 'titles.ts'), ...args], { cwd: folder, encoding: 'utf8' });
    const message = join(folder, 'message');
    writeFileSync(message, 'cron: retries work\n\nBecause.\n');
    expect([run('--file', message).status, run('--file', message).stderr]).toEqual([1, expect.stringContaining('not an imperative')]);
    writeFileSync(message, 'cron: retry work\n\nBecause it fails.\n');
    expect(run('--file', message).status).toBe(0);
    spawnSync('git', ['init', '-q'], { cwd: folder });
    expect([run().status, run().stdout]).toEqual([0, 'The history is not here: no title was checked\n']);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
