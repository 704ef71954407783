import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import { silentLog } from '../../kernel/log.ts';
import { callTools } from '../../runtime/call-tools.ts';
import { createFence } from '../../runtime/fence.ts';
import { turnInput } from '../../runtime/testing.ts';
import { createWorkspaceTools } from './tools.ts';

let base: string;
let workspaceDir: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'gatehouse-workspace-'));
  workspaceDir = join(base, 'workspaces', 'default');
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** As the loop calls it; a fenced result is shown without its fence. */
async function call(name: string, args: unknown) {
  const input = turnInput({ tools: createWorkspaceTools(), workspaceDir, agent: {} });
  const [result] = await callTools(
    { clock: systemClock, fence: createFence({ key: Buffer.alloc(32) }), log: silentLog },
    { input, signal: input.signal, beforeOnce: async () => {} },
    [{ id: 'c', name, arguments: JSON.stringify(args) }],
  );
  if (result?.role !== 'tool') expect.fail('no result');
  const fenced = /^<<<UNTRUSTED-TEXT [0-9a-f]{32} source="([^"]*)">>>\n(.*)\n<<<END-UNTRUSTED-TEXT [0-9a-f]{32}>>>$/s.exec(result.content);
  return { content: fenced?.[2] ?? result.content, source: fenced?.[1], failed: result.isError === true };
}

describe('workspace tools', () => {
  it('write a file and read it back, fenced; the folder is made for its owner only', async () => {
    expect(await call('write', { path: 'notes/a.md', content: '# Hü\n\nline\n' })).toMatchObject({
      content: 'Wrote 12 bytes to notes/a.md',
      failed: false,
    });
    expect(await call('read', { path: 'notes/a.md' })).toEqual({ content: '# Hü\n\nline', source: 'workspace file notes/a.md', failed: false });
    expect(statSync(workspaceDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(workspaceDir, 'notes', 'a.md')).mode & 0o777).toBe(0o600);
    await call('write', { path: 'notes/a.md', content: '' });
    expect(await call('read', { path: 'notes/a.md' })).toMatchObject({ content: '(the file is empty)' });
  });

  it('show a part of a file, and where to go on', async () => {
    await call('write', { path: 'long.txt', content: Array.from({ length: 5000 }, (_, index) => `line ${index + 1}`).join('\n') });
    expect((await call('read', { path: 'long.txt' })).content).toMatch(/^line 1\n.*line 2000\n\[lines 1 to 2000 of 5000; go on with offset 2001\]$/s);
    expect((await call('read', { path: 'long.txt', offset: 4999, limit: 5 })).content).toBe('line 4999\nline 5000\n[lines 4999 to 5000 of 5000]');
    expect(await call('read', { path: 'long.txt', offset: 5001 })).toMatchObject({ content: 'offset: the file has 5000 lines', failed: true });
  });

  it('bound what is read and written', async () => {
    expect(await call('write', { path: 'big.txt', content: 'x'.repeat(1024 * 1024 + 1) })).toMatchObject({
      failed: true,
      content: 'The content is larger than 1048576 bytes',
    });
    await call('write', { path: 'wide.txt', content: `${'y'.repeat(1000)}\n`.repeat(1000) });
    expect((await call('read', { path: 'wide.txt' })).content).toMatch(/\n\[lines 1 to 47 of 1000; go on with offset 48\]$/);
    writeFileSync(join(workspaceDir, 'huge.bin'), Buffer.alloc(16 * 1024 * 1024 + 1, 'a'));
    expect(await call('read', { path: 'huge.bin' })).toMatchObject({ failed: true, content: expect.stringContaining('larger than') });
    writeFileSync(join(workspaceDir, 'binary'), Buffer.from([1, 0, 2]));
    expect(await call('read', { path: 'binary' })).toMatchObject({ failed: true, content: 'The file is not text' });
  });

  it('stay inside the folder', async () => {
    await call('write', { path: 'a.txt', content: 'x' });
    writeFileSync(join(base, 'secret.txt'), 'SECRET');
    symlinkSync(join(base, 'secret.txt'), join(workspaceDir, 'link.txt'));
    const missing = await call('read', { path: 'missing.txt' });
    expect(missing.failed).toBe(true);
    for (const path of ['../../secret.txt', join(base, 'secret.txt'), 'link.txt', '..%2f..%2fsecret.txt']) {
      expect(await call('read', { path })).toEqual(missing);
      expect(await call('write', { path, content: 'mine' })).toEqual(missing);
    }
    expect(readFileSync(join(base, 'secret.txt'), 'utf8')).toBe('SECRET');
  });

  it('say what is wrong with their arguments', async () => {
    expect(await call('read', { path: 'a', offset: 0 })).toMatchObject({ failed: true, content: expect.stringMatching(/offset: /) });
    expect(await call('write', { path: 'a' })).toMatchObject({ failed: true, content: expect.stringMatching(/content: /) });
  });

  it('read before anything was written is a plain miss', async () => {
    expect(await call('read', { path: 'a.txt' })).toMatchObject({ failed: true, content: expect.stringContaining('There is no such file') });
  });
});
