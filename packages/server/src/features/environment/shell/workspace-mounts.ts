import { mkdir, readdir, realpath } from 'node:fs/promises';
import { standardFolders } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { JailMount } from '../../../kernel/jail.ts';
import { makeFoldersInside } from '../../../kernel/safe-path.ts';

/** Path of the workspace as commands see it. */
export const workspaceInside = '/workspace';

/** Overlong tool results are stored there, also those of other conversations. */
const kept = '.gatehouse';
export const maskedInside = [`${workspaceInside}/${kept}`];

const maxFolders = 256;

/**
 * Mounts the workspace for commands: readable, with writable folders, except the root (its files make up the prompt),
 * skills and hidden files. A folder that is a link is not mounted; none can become one meanwhile, because
 * what runs in the jail cannot rename a folder of the root and the tools for files make no links.
 */
export async function workspaceMounts(workspaceDir: string): Promise<readonly JailMount[]> {
  await mkdir(workspaceDir, { recursive: true, mode: 0o700 });
  await makeFoldersInside(workspaceDir, [...standardFolders, kept]);
  const root = await realpath(workspaceDir);
  const folders = (await readdir(root, { withFileTypes: true })).filter(
    (entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name.toLowerCase() !== 'skills',
  );
  if (folders.length > maxFolders)
    throw new AppError('precondition_failed', `The workspace has ${folders.length} folders at its top; commands run with ${maxFolders} at most`);
  return [
    { from: root, to: workspaceInside, writable: false },
    ...folders.map(({ name }) => ({ from: `${root}/${name}`, to: `${workspaceInside}/${name}`, writable: true })),
  ];
}

/** Resolves the folder that a caller names relative to the workspace, or below /workspace or /tmp. */
export function folderInside(cwd: string | undefined): string {
  if (cwd === undefined || cwd === '.' || cwd === '') return workspaceInside;
  const path = cwd.startsWith('/') ? cwd : `${workspaceInside}/${cwd}`;
  if (/(^|\/)\.\.(\/|$)/.test(path) || !/^\/(workspace|tmp)(\/|$)/.test(path))
    throw new AppError('invalid_params', 'cwd: expected a folder of the workspace such as "projects/app", without ".."', { param: 'cwd' });
  return path;
}
