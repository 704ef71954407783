import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { startTestServer } from '@gatehouse/testkit';
import type { Client } from '@gatehouse/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createToolCaller, hostilePaths } from './testing.ts';

const secret = 'SECRET-OF-ANOTHER';

/** A workspace with every trap for paths, and a secret next to it. */
function furnish(workspaceDir: string): void {
  mkdirSync(join(workspaceDir, 'notes'), { recursive: true });
  writeFileSync(join(workspaceDir, '..', 'secret.txt'), secret);
  writeFileSync(join(workspaceDir, '..', '..', 'secret.txt'), secret);
  writeFileSync(join(workspaceDir, 'notes/a.txt'), 'inside');
  symlinkSync('../secret.txt', join(workspaceDir, 'link.txt'));
  symlinkSync('notes/a.txt', join(workspaceDir, 'inner-link.txt'));
  symlinkSync('..', join(workspaceDir, 'linked'));
  linkSync(join(workspaceDir, '..', 'secret.txt'), join(workspaceDir, 'hard.txt'));
  execFileSync('mkfifo', [join(workspaceDir, 'fifo')]);
}

/** Snapshots everything around the workspace, to check that none of it changed. */
function around(workspaceDir: string): unknown {
  const parent = join(workspaceDir, '..');
  return [readdirSync(join(parent, '..')), readdirSync(parent), readFileSync(join(parent, 'secret.txt'), 'utf8'), readdirSync(workspaceDir)];
}

describe('hostile paths', () => {
  it('cover enough cases', () => expect(new Set(hostilePaths).size).toBeGreaterThanOrEqual(60));

  describe('in tools', () => {
    let base: string;
    let workspaceDir: string;
    beforeEach(() => {
      base = mkdtempSync(join(tmpdir(), 'gatehouse-tool-paths-'));
      workspaceDir = join(base, 'workspaces', 'default');
      mkdirSync(workspaceDir, { recursive: true });
      furnish(workspaceDir);
    });
    afterEach(() => rmSync(base, { recursive: true, force: true }));
    const call = createToolCaller(() => workspaceDir);

    const update = (path: string) => `*** Begin Patch\n*** Update File: ${path}\n@@\n-${secret}\n+mine\n*** End Patch`;
    const pathTools: readonly (readonly [string, (path: string) => object])[] = [
      ['read', (path) => ({ path })],
      ['write', (path) => ({ path, content: 'mine' })],
      ['edit', (path) => ({ path, oldText: secret, newText: 'mine' })],
      ['ls', (path) => ({ path })],
      ['apply_patch', (path) => ({ patch: update(path) })],
      ['apply_patch', (path) => ({ patch: `*** Begin Patch\n*** Delete File: ${path}\n*** End Patch` })],
      ['apply_patch', (path) => ({ patch: `*** Begin Patch\n*** Add File: ${path}\n+mine\n*** End Patch` })],
      [
        'apply_patch',
        (path) => ({ patch: `*** Begin Patch\n*** Update File: notes/a.txt\n*** Move to: ${path}\n@@\n-inside\n+mine\n*** End Patch` }),
      ],
    ];

    it.for(pathTools)('%s refuses every one, and nothing changes', async ([name, argsOf]) => {
      const before = around(workspaceDir);
      for (const path of hostilePaths) {
        const { content, failed } = await call(name, argsOf(path));
        expect(failed, `${name} ${JSON.stringify(path)}: ${content}`).toBe(true);
        expect(content).not.toContain(secret);
      }
      expect(around(workspaceDir)).toEqual(before);
      expect(readFileSync(join(workspaceDir, 'notes/a.txt'), 'utf8')).toBe('inside');
    });

    it('find and grep search none of them', async () => {
      // Each starts a thread: try a few of every kind.
      for (const path of ['..', '/etc', '../secret.txt', 'linked', 'link.txt', 'hard.txt', '%2e%2e', 'notes/..', '.gatehouse', 'a\0']) {
        expect(await call('grep', { pattern: 'SECRET', path })).toMatchObject({ failed: true });
        expect(await call('find', { pattern: '*', path })).toMatchObject({ failed: true });
      }
      expect(await call('grep', { pattern: 'SECRET|inside' })).toMatchObject({ content: 'notes/a.txt:1: inside' });
      expect(await call('find', { pattern: '**' })).toMatchObject({ content: 'notes/a.txt' });
      expect(await call('find', { pattern: '../*' })).toMatchObject({ content: 'No file has such a name' });
    });

    it('writing tools refuse repositories, skills and daemon files, also in other spellings', async () => {
      for (const path of [
        '.git/config',
        'projects/app/.git/hooks/pre-commit',
        '.GIT/config',
        '.gatehouse/workspace.json',
        'skills/x/SKILL.md',
        'Skills/x',
        'ｓｋｉｌｌｓ/x',
      ]) {
        for (const [name, args] of [
          ['write', { path, content: 'x' }],
          ['edit', { path, oldText: 'x', newText: 'y' }],
          ['apply_patch', { patch: `*** Begin Patch\n*** Add File: ${path}\n+x\n*** End Patch` }],
        ] as const)
          expect(await call(name, args), path).toMatchObject({ failed: true, content: expect.stringMatching(/cannot be changed/) });
      }
      expect(readdirSync(workspaceDir)).not.toContain('skills');
    });

    it('links that are swapped meanwhile lead nowhere', async () => {
      const real = join(workspaceDir, 'notes');
      writeFileSync(join(base, 'workspaces', 'a.txt'), secret);
      const worker = new Worker(
        `const { renameSync, symlinkSync, unlinkSync } = require('node:fs');
         const { workerData: { real }, parentPort } = require('node:worker_threads');
         let stop = false;
         parentPort.on('message', () => { stop = true; });
         let swaps = 0;
         (function swap() {
           for (let i = 0; i < 50; i += 1) {
             try {
               renameSync(real, real + '-away');
               symlinkSync('..', real);
               swaps += 1;
               unlinkSync(real);
               renameSync(real + '-away', real);
             } catch {
               // A writer recreated the folder while it was away.
               try { renameSync(real, real + '-made-' + swaps + '-' + i); } catch {}
               try { renameSync(real + '-away', real); } catch {}
             }
           }
           if (stop) { parentPort.postMessage(swaps); parentPort.close(); } else setImmediate(swap);
         })();`,
        { eval: true, workerData: { real } },
      );
      const swaps = new Promise<number>((resolve) => worker.once('message', resolve));
      const said: string[] = [];
      for (let round = 0; round < 60; round += 1) {
        const results = await Promise.all([
          call('read', { path: 'notes/a.txt' }),
          call('write', { path: 'notes/b.txt', content: 'mine' }),
          call('edit', { path: 'notes/a.txt', oldText: secret, newText: 'mine' }),
          call('ls', { path: 'notes' }),
          call('apply_patch', {
            patch: '*** Begin Patch\n*** Update File: notes/a.txt\n@@\n-inside\n+inside still\n*** Add File: notes/c.txt\n+mine\n*** End Patch',
          }),
        ]);
        said.push(...results.map(({ content }) => content));
      }
      worker.postMessage('stop');
      expect(await swaps).toBeGreaterThan(100);
      await worker.terminate();
      expect(said.join('\n')).not.toContain(secret);
      expect(readdirSync(join(base, 'workspaces')).toSorted()).toEqual(['a.txt', 'default', 'secret.txt']);
      expect(readFileSync(join(base, 'workspaces', 'a.txt'), 'utf8')).toMatch(secret);
    });
  });

  describe('in methods', () => {
    it('every parameter refuses every one alike, and nothing changes', async () => {
      await using server = await startTestServer();
      const agentId = 'default';
      const { dir } = await server.client.call('workspace.init', { agentId });
      furnish(dir);
      await server.client.call('workspace.git.commit', { agentId, paths: ['SOUL.md'] });
      const socket = server.socket();
      const calls: readonly (readonly [string, boolean, (path: string, client: Pick<Client, 'call'>) => Promise<unknown>])[] = [
        ['readFile', true, (filePath, client) => client.call('workspace.readFile', { agentId, filePath })],
        ['writeFile', true, (filePath, client) => client.call('workspace.writeFile', { agentId, filePath, content: 'mine' })],
        ['deleteFile', true, (filePath, client) => client.call('workspace.deleteFile', { agentId, filePath })],
        ['listDir', true, (subdir, client) => client.call('workspace.listDir', { agentId, subdir })],
        ['listDir below', true, (path, client) => client.call('workspace.listDir', { agentId, subdir: `projects/${path}` })],
        ['resetFile', true, (fileName, client) => client.call('workspace.resetFile', { agentId, fileName })],
        ['git.diff', false, (filePath, client) => client.call('workspace.git.diff', { agentId, filePath })],
        ['git.commit', true, (path, client) => client.call('workspace.git.commit', { agentId, paths: [path] })],
        ['git.restore', true, (filePath, client) => client.call('workspace.git.restore', { agentId, filePath })],
      ];
      const before = around(dir);
      let turn = 0;
      for (const [name, mustFail, call] of calls) {
        for (const path of hostilePaths) {
          // Only the name of a link is removed, which does no harm; the same holds for the fifo and the second name of a file.
          if (name === 'deleteFile' && /^(?:link|inner-link|hard)\.txt$|^fifo$/.test(path)) continue;
          turn += 1;
          const outcome = await call(path, turn % 2 === 0 ? server.client : socket).then(
            (result) => ({ result }),
            (error: unknown) => ({ error }),
          );
          expect(JSON.stringify(outcome)).not.toContain(secret);
          if ('error' in outcome)
            expect(outcome.error, `${name} ${JSON.stringify(path)}`).toMatchObject({
              code: expect.stringMatching(/^(?:not_found|invalid_params|precondition_failed)$/),
            });
          else expect(mustFail ? `${name} took ${JSON.stringify(path)}` : outcome.result).toEqual({ diff: '' });
        }
      }
      socket.close();
      expect(around(dir)).toEqual(before);
    });
  });
});
