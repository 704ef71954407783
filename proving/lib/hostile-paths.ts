import { execFile } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** What surrounds a workspace: `base` holds the home of the daemon and `outside`, which no request may touch. */
export interface Surroundings {
  readonly base: string;
  readonly outside: string;
  readonly workspace: string;
  /** Workspace of another agent whose name has the same beginning. */
  readonly sibling: string;
}

/** Paths that lead out of the workspace, or would under another interpretation. */
export function hostilePaths({ base, outside }: Surroundings): readonly string[] {
  const up = '../../../outside/secret.txt';
  return [
    up,
    '../../../outside',
    `./${up}`,
    `notes/../${up}`,
    `notes/./../${up}`,
    `notes/a.txt/../../${up}`,
    `missing/../${up}`,
    `linked/../${up}`,
    '..',
    '../',
    '../..',
    '../default-2',
    '../default-2/secret.txt',
    '../default/../default-2/secret.txt',
    '../../config.yaml',
    '../../install.key',
    '../../data/gatehouse.db',
    '../.git-default/config',
    `${outside}/secret.txt`,
    `/${outside}/secret.txt`,
    `//${outside.slice(1)}/secret.txt`,
    `file://${outside}/secret.txt`,
    `${base}/home/workspaces/default/../default-2/secret.txt`,
    '/etc/passwd',
    '/proc/self/environ',
    `/proc/self/root${outside}/secret.txt`,
    `/proc/self/cwd/${up}`,
    '~/secret.txt',
    '~',
    '$HOME/secret.txt/..',
    up.replaceAll('/', '\\'),
    `notes\\${up}`,
    `C:${outside}\\secret.txt`,
    '\\\\server\\share\\secret.txt',
    up.replaceAll('.', '%2e'),
    up.replaceAll('/', '%2f'),
    up.replaceAll('..', '%2e%2e'),
    up.replaceAll('.', '%252e').replaceAll('/', '%252f'),
    up.replaceAll('/', '%5c'),
    up.replaceAll('/', '%c0%af'),
    up.replaceAll('.', '%u002e'),
    up.replaceAll('../', '....//'),
    up.replaceAll('../', '..;/'),
    up.replaceAll('../', '.\u200b./'),
    up.replaceAll('../', '\u202e../'),
    up.replaceAll('.', '．').replaceAll('/', '／'),
    up.replaceAll('..', '‥'),
    up.replaceAll('/', '∕'),
    up.replaceAll('/', '＼'),
    `\ufeff${up}`,
    `${up}\0.png`,
    `notes/a.txt\0/${up}`,
    `notes/a.txt\n${up}`,
    `\ud800/${up}`,
    `${'d/'.repeat(40)}${up}`,
    `${'../'.repeat(330)}${outside.slice(1)}/secret.txt`,
    'link.txt',
    'inner-link.txt',
    'linked',
    'linked/',
    'linked/secret.txt',
    'linked/folder/deep.txt',
    'linked/new.txt',
    'projects/linked',
    'projects/linked/secret.txt',
    'documents/linked/folder',
    'hard.txt',
    'fifo',
    '.git/config',
    '.GIT/config',
    '.gatehouse/x',
    'CON',
    'secret.txt::$DATA',
    'x'.repeat(256),
    'e\u0301.txt',
  ];
}

/** Creates the links and special files of the corpus, again when a call has removed one. */
export async function layLinks({ outside, workspace }: Surroundings): Promise<void> {
  for (const folder of ['notes', 'projects', 'documents']) await mkdir(join(workspace, folder), { recursive: true, mode: 0o700 });
  await writeFile(join(workspace, 'notes/a.txt'), 'inside\n');
  const links: readonly (readonly [string, string])[] = [
    ['link.txt', join(outside, 'secret.txt')],
    ['inner-link.txt', 'notes/a.txt'],
    ['linked', outside],
    ['projects/linked', '../../../../outside'],
    ['documents/linked', outside],
  ];
  for (const [name, target] of links) {
    await rm(join(workspace, name), { force: true });
    await symlink(target, join(workspace, name));
  }
  await rm(join(workspace, 'fifo'), { force: true });
  await promisify(execFile)('mkfifo', [join(workspace, 'fifo')]);
}
