import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../proving/lib/daemon.ts';

export type PackageGroup = 'chat' | 'responses' | 'messages' | 'more' | 'lighthouse';

export type Installed = { readonly dir: string } | { readonly missing: string };

/**
 * Installs the pinned command lines of one lock file below `e2e/clients/` when a suite needs them: they are not part of
 * the project's packages. The folder is named after the lock file's digest, so that an unchanged one is installed once.
 * Returns the folder, or why the packages are not available here.
 */
export async function installClients(group: PackageGroup): Promise<Installed> {
  const source = join(root, 'e2e/clients', group);
  const lock = await readFile(join(source, 'package-lock.json'));
  const dir = join(root, '.build/clients', `${group}-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
  const stamp = join(dir, '.installed');
  if ((await readFile(stamp, 'utf8').catch(() => '')) !== '') return { dir };
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  for (const name of ['package.json', 'package-lock.json']) await cp(join(source, name), join(dir, name));
  console.error(`e2e: installing the clients of e2e/clients/${group} (npm install, without scripts)`);
  const npm = process.env['npm_execpath'];
  const command = npm?.endsWith('.js') === true ? [process.execPath, npm] : ['npm'];
  const args = ['install', '--no-save', '--ignore-scripts', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const [file = '', ...before] = command;
  // Not `npm ci`, for the reason explained in tools/ensure.mjs.
  const problem = await new Promise<string | undefined>((resolve) => {
    execFile(file, [...before, ...args], { cwd: dir, timeout: 300_000 }, (error, _stdout, stderr) =>
      resolve(error === null ? undefined : stderr.trim().slice(-500) || error.message),
    );
  });
  if (problem !== undefined) return { missing: `the packages of e2e/clients/${group} cannot be installed: ${problem}` };
  await writeFile(stamp, '1');
  return { dir };
}
