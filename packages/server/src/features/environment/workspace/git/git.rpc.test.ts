import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const agentId = 'default';
let server: TestServer;
let dir: string;
let gitDir: string;
beforeEach(async () => {
  server = await startTestServer();
  dir = (await server.client.call('workspace.init', { agentId })).dir;
  gitDir = join(dir, '..', '.git-default');
});
afterEach(() => server[Symbol.asyncDispose]());

const write = (filePath: string, content: string) => server.client.call('workspace.writeFile', { agentId, filePath, content });
const commit = (more: { message?: string; paths?: string[] } = {}) => server.client.call('workspace.git.commit', { agentId, ...more });
const status = () => server.client.call('workspace.git.status', { agentId });
const diff = async (filePath?: string) =>
  (await server.client.call('workspace.git.diff', { agentId, ...(filePath !== undefined && { filePath }) })).diff;
const log = async (limit?: number) => (await server.client.call('workspace.git.log', { agentId, ...(limit !== undefined && { limit }) })).commits;
/** Runs git on the repository as the owner would. */
const git = (...args: string[]) => execFileSync('git', [`--git-dir=${gitDir}`, ...args], { encoding: 'utf8' });

describe('the history of a workspace', () => {
  it('is empty at first, commits everything, and then shows changes', async () => {
    expect(await log()).toEqual([]);
    expect(await diff()).toBe('');
    expect((await status()).branch).toBe('main');
    const first = await commit({ message: 'Begin\u0007\nhere' });
    expect(first).toMatchObject({ sha: expect.stringMatching(/^[0-9a-f]{40}$/), author: 'Operator', message: 'Begin here' });
    expect(await status()).toEqual({ branch: 'main', clean: true, entries: [], truncated: false });
    await expect(commit()).rejects.toMatchObject({ code: 'precondition_failed', message: 'Nothing to commit' });

    await write('documents/plan.md', '# Plan\n');
    await write('documents/other.md', 'other\n');
    expect((await commit({ paths: ['./documents/plan.md'] })).message).toBe('Operator commit via web console');
    expect((await status()).entries).toEqual([{ path: 'documents/other.md', status: 'untracked', staged: false }]);
    await write('documents/plan.md', '# Plans\n');
    rmSync(join(dir, 'SOUL.md'));
    expect((await status()).entries).toEqual([
      { path: 'SOUL.md', status: 'deleted', staged: false },
      { path: 'documents/plan.md', status: 'modified', staged: false },
      { path: 'documents/other.md', status: 'untracked', staged: false },
    ]);
    expect(await diff('documents')).toBe(
      'diff --git a/documents/plan.md b/documents/plan.md\nindex 14fba09..ec6dad9 100644\n--- a/documents/plan.md\n+++ b/documents/plan.md\n@@ -1 +1 @@\n-# Plan\n+# Plans\n',
    );
    expect(await diff()).toMatch(/deleted file mode[^]*SOUL\.md[^]*documents\/plan\.md/);
    expect(await server.client.call('workspace.git.restore', { agentId, filePath: 'SOUL.md' })).toEqual({ restored: true });
    expect(readFileSync(join(dir, 'SOUL.md'), 'utf8')).toContain('# Soul');
    await commit({ message: 'All', paths: ['documents'] });
    expect((await status()).clean).toBe(true);
    expect((await log(2)).map(({ message }) => message)).toEqual(['All', 'Operator commit via web console']);
    expect(await log(0)).toHaveLength(1);
    expect(git('show', 'HEAD:documents/plan.md')).toBe('# Plans\n');
    expect(git('fsck', '--strict')).toBe('');
  });

  it('handles files that become folders and the reverse, and many files', async () => {
    await write('data/thing', 'file');
    await commit();
    rmSync(join(dir, 'data/thing'));
    for (let index = 0; index < 150; index += 1) await write(`data/thing/${index}.txt`, `${index}`);
    await commit();
    expect((await status()).clean).toBe(true);
    expect(git('ls-tree', '-r', '--name-only', 'HEAD', 'data/').trim().split('\n')).toHaveLength(150);
    rmSync(join(dir, 'data/thing'), { recursive: true });
    await write('data/thing', 'again');
    await commit();
    expect(git('ls-tree', '-r', '--name-only', 'HEAD', 'data/')).toBe('data/thing\n');
    expect((await status()).clean).toBe(true);
  });

  it('has no version of uncommitted files, and no repository before init', async () => {
    await expect(server.client.call('workspace.git.restore', { agentId, filePath: 'SOUL.md' })).rejects.toMatchObject({
      code: 'not_found',
      message: 'File has no committed version',
    });
    await commit();
    for (const filePath of ['missing.md', 'documents'])
      await expect(server.client.call('workspace.git.restore', { agentId, filePath })).rejects.toMatchObject({ code: 'not_found' });
    rmSync(gitDir, { recursive: true });
    const none = { code: 'precondition_failed', message: 'No git repository in workspace. Initialize with workspace.init first.' };
    await expect(status()).rejects.toMatchObject(none);
    await expect(log()).rejects.toMatchObject(none);
    await expect(diff()).rejects.toMatchObject(none);
    await expect(commit()).rejects.toMatchObject(none);
    await expect(server.client.call('workspace.git.restore', { agentId, filePath: 'SOUL.md' })).rejects.toMatchObject(none);
  });

  it('reports a detached head and commits nothing there', async () => {
    await commit();
    git('update-ref', '--no-deref', 'HEAD', git('rev-parse', 'HEAD').trim());
    writeFileSync(join(gitDir, 'HEAD'), git('rev-parse', 'refs/heads/main'));
    await write('documents/a.md', 'a');
    expect((await status()).branch).toBe('HEAD (detached)');
    await expect(commit()).rejects.toMatchObject({ code: 'precondition_failed', message: expect.stringContaining('detached') });
  });

  it('keeps changes that others staged as staged', async () => {
    await commit();
    await write('documents/a.md', 'a');
    git(`--work-tree=${dir}`, 'add', 'documents/a.md');
    expect((await status()).entries).toEqual([{ path: 'documents/a.md', status: 'added', staged: true }]);
    git('config', 'status.renames', 'true');
    await commit();
    expect((await status()).clean).toBe(true);
  });

  it('limits what it shows', async () => {
    await write('documents/long.txt', 'a\n'.repeat(100_000));
    await write('documents/huge.txt', 'small');
    await commit();
    writeFileSync(join(dir, 'documents/long.txt'), `${'b'.repeat(50)}\n`.repeat(20_000));
    writeFileSync(join(dir, 'documents/huge.txt'), 'x'.repeat(1024 * 1024 + 1));
    const text = await diff();
    expect(text.length).toBeLessThan(513 * 1024);
    expect(text).toContain('[cut: the diff is longer than 524288 bytes]');
    expect(text).toContain('[documents/huge.txt: 1048577 bytes, not shown]');
    writeFileSync(join(dir, 'documents/enormous.bin'), Buffer.alloc(16 * 1024 * 1024 + 1));
    await expect(commit()).rejects.toMatchObject({ code: 'payload_too_large', message: expect.stringContaining('documents/enormous.bin') });
    await write('.gitignore', '*.bin\n');
    expect((await status()).entries.map(({ path }) => path)).not.toContain('documents/enormous.bin');
    await commit();
  });

  it('removes an abandoned lock, and not one that is held', async () => {
    await commit();
    const lock = join(gitDir, 'index.lock');
    writeFileSync(lock, '');
    await write('documents/a.md', 'a');
    await expect(commit()).rejects.toMatchObject({ code: 'internal' });
    expect(existsSync(lock)).toBe(true);
    utimesSync(lock, new Date(0), new Date(0));
    expect(await commit({ paths: ['SOUL.md', 'documents'] }).catch((error: unknown) => error)).not.toMatchObject({ code: 'internal' });
    expect(existsSync(lock)).toBe(false);
  });
});

describe('what an agent may leave in its workspace', () => {
  const spy = () => join(dir, '..', 'spy');
  const program = () => `sh -c 'touch ${spy()}'`;

  it('runs nothing: hooks, filters, drivers, file monitors, repositories inside, settings', async () => {
    await write('documents/a.md', 'a');
    await commit();
    for (const folder of ['', 'projects/inner']) {
      const inner = join(dir, folder, '.git');
      mkdirSync(join(dir, folder), { recursive: true });
      execFileSync('git', ['init', '-q', join(dir, folder)]);
      mkdirSync(join(inner, 'hooks'), { recursive: true });
      writeFileSync(
        join(inner, 'config'),
        `[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ${program()}\n\tpager = ${program()}\n\thooksPath = ${inner}/hooks\n[diff]\n\texternal = ${program()}\n[diff "spy"]\n\ttextconv = ${program()}\n\tcommand = ${program()}\n[filter "spy"]\n\tclean = ${program()}\n\tsmudge = ${program()}\n\trequired = true\n`,
      );
      for (const hook of ['pre-commit', 'post-commit', 'post-index-change', 'reference-transaction', 'post-checkout'])
        writeFileSync(join(inner, 'hooks', hook), `#!/bin/sh\ntouch ${spy()}\n`, { mode: 0o755 });
    }
    writeFileSync(join(dir, 'projects/inner/file.txt'), 'x');
    execFileSync('git', [
      '-C',
      join(dir, 'projects/inner'),
      '-c',
      'core.fsmonitor=false',
      '-c',
      'core.hooksPath=/dev/null',
      '-c',
      'user.name=a',
      '-c',
      'user.email=a@b',
      '-c',
      'filter.spy.clean=',
      'commit',
      '-q',
      '--allow-empty',
      '-m',
      'x',
    ]);
    await write('.gitattributes', '* filter=spy diff=spy text working-tree-encoding=UTF-16\n');
    await write('.gitmodules', '[submodule "inner"]\n\tpath = projects/inner\n\turl = ../inner\n\tignore = none\n\tupdate = !sh\n');
    await write('documents/a.md', 'line\r\nother\r\n');
    rmSync(spy(), { force: true });

    await status();
    expect(await diff()).toContain('+line\r');
    await commit();
    expect((await status()).entries).toEqual([{ path: 'projects/inner/', status: 'untracked', staged: false }]);
    expect(git('show', 'HEAD:documents/a.md')).toBe('line\r\nother\r\n');
    expect(git('ls-tree', '-r', 'HEAD')).not.toMatch(/^160000|\.git\//m);
    await write('documents/a.md', 'b');
    await server.client.call('workspace.git.restore', { agentId, filePath: 'documents/a.md' });
    await log();
    expect(existsSync(spy())).toBe(false);
    // The traps work: a plain git runs into them.
    execFileSync('git', ['-C', dir, 'status'], { stdio: 'ignore' });
    expect(existsSync(spy())).toBe(true);
  });

  it('keeps links out of the history, and follows none', async () => {
    const outside = join(dir, '..', 'secret.txt');
    writeFileSync(outside, 'SECRET');
    await write('documents/a.md', 'a');
    await commit();
    symlinkSync(outside, join(dir, 'documents/link.md'));
    await expect(commit()).rejects.toMatchObject({ message: 'Nothing to commit' });
    rmSync(join(dir, 'documents/a.md'));
    symlinkSync(outside, join(dir, 'documents/a.md'));
    expect(await diff()).not.toContain('SECRET');
    await expect(server.client.call('workspace.git.restore', { agentId, filePath: 'documents/a.md' })).rejects.toMatchObject({ code: 'not_found' });
    rmSync(join(dir, 'documents'), { recursive: true });
    mkdirSync(join(dir, '..', 'elsewhere'));
    symlinkSync(join(dir, '..', 'elsewhere'), join(dir, 'documents'));
    await expect(server.client.call('workspace.git.restore', { agentId, filePath: 'documents/a.md' })).rejects.toMatchObject({ code: 'not_found' });
    expect(readdirSync(join(dir, '..', 'elsewhere'))).toEqual([]);
    expect(readFileSync(outside, 'utf8')).toBe('SECRET');
  });

  it('is not blocked by a pipe, socket or device anywhere in the workspace', async () => {
    await write('projects/a.md', 'a');
    await write('projects/inner/.gitkeep', '');
    await commit();
    await write('projects/a.md', 'b');
    mkdirSync(join(dir, 'projects/repo/.git'), { recursive: true });
    mkdirSync(join(dir, 'projects/elsewhere/objects'), { recursive: true });
    mkdirSync(join(dir, 'projects/elsewhere/refs'), { recursive: true });
    mkdirSync(join(dir, 'projects/led'));
    mkdirSync(join(dir, 'projects/odd\u0007name'));
    writeFileSync(join(dir, 'projects/led/.git'), 'gitdir: ../elsewhere\n');
    const pipes = [
      '.gitignore',
      '.gitattributes',
      '.gitmodules',
      '.mailmap',
      '.git',
      'projects/.gitignore',
      'projects/.gitattributes',
      'projects/inner/.git',
      'projects/repo/.git/HEAD',
      'projects/repo/.git/commondir',
      'projects/elsewhere/HEAD',
      'projects/elsewhere/commondir',
      'projects/odd\u0007name/.gitignore',
    ].map((name) => join(dir, name));
    execFileSync('mkfifo', [...pipes, join(dir, 'projects/kept')]);
    const [{ entries }, text] = await Promise.all([status(), diff(), log()]);
    expect(entries).toContainEqual({ path: 'projects/a.md', status: 'modified', staged: false });
    expect(text).toContain('+b');
    await commit();
    expect((await status()).entries.filter(({ status: kind }) => kind !== 'untracked')).toEqual([]);
    expect(pipes.filter((path) => existsSync(path))).toEqual([]);
    // Special files that git does not open by name stay: programs of the agent may use them.
    expect(existsSync(join(dir, 'projects/kept'))).toBe(true);
    const reads = [
      server.client.call('workspace.listDir', { agentId, subdir: 'projects' }),
      server.client.call('workspace.status', { agentId }),
      server.client.call('workspace.readFile', { agentId, filePath: 'projects/kept' }).catch((error: unknown) => error),
    ];
    expect(await Promise.all(reads)).toEqual([
      { entries: expect.not.arrayContaining([expect.objectContaining({ name: 'kept' })]), truncated: false },
      expect.objectContaining({ exists: true }),
      expect.objectContaining({ code: 'not_found' }),
    ]);
  });
});
