import { hash } from 'node:crypto';
import { AppError } from '../../../../kernel/app-error.ts';
import { openBehind } from '../../../../kernel/safe-path.ts';
import { findTreeDigest } from '../../../../kernel/tree-thread.ts';
import type { Tool } from '../../../../runtime/tool.ts';

const maxNameCharacters = 4096;
/** A larger file is identified by its size and times, which a command cannot reset. */
const maxBytes = 1024 * 1024;
/** Content to write is shown itself: a name in it names nothing that runs. */
const contents: ReadonlySet<string> = new Set(['content', 'newText', 'oldText', 'text', 'message']);
/** Overlong tool results: no program sees them. */
const unseen: readonly string[] = ['.gatehouse'];

export interface NamingCall {
  readonly tool: Pick<Tool, 'runsPrograms'>;
  readonly args: unknown;
  readonly workspaceDir: string;
}

/**
 * Hashes the files that a call is about, with their names: other content makes it another call. A program can spell, compute or
 * read the name of what it runs, so a call that runs one covers everything in the workspace; any other covers what its arguments name.
 */
export async function digestNamedFiles({ tool, args, workspaceDir }: NamingCall): Promise<string> {
  const cwd = typeof args === 'object' && args !== null ? Reflect.get(args, 'cwd') : undefined;
  const found: string[] = [];
  // Check all of them, because a script must not hide behind many words; approvable arguments are limited in size.
  for (const name of [...new Set(wordsIn(args))].toSorted())
    for (const path of pathsOf(name, typeof cwd === 'string' ? cwd : '')) {
      const digest = await digestOf(workspaceDir, path);
      if (digest !== undefined) found.push(`${path}\0${digest}`);
    }
  if (tool.runsPrograms?.(args) === true) found.push(await findTreeDigest({ root: workspaceDir, without: unseen }));
  return found.length === 0 ? '' : hash('sha256', found.join('\0'), 'hex');
}

function wordsIn(value: unknown): string[] {
  if (typeof value === 'string')
    return [value, ...value.split(/[\s"'`;|&<>()=,]+/)].filter((word) => word !== '' && word.length <= maxNameCharacters);
  if (Array.isArray(value)) return value.flatMap(wordsIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) => (contents.has(name) ? [] : wordsIn(item)));
}

function pathsOf(name: string, cwd: string): string[] {
  const inside = (path: string) => path.replace(/^\/workspace(?:\/|$)/, '');
  const folder = inside(cwd);
  return folder === '' || name.startsWith('/') ? [inside(name)] : [name, `${folder}/${name}`];
}

async function digestOf(workspaceDir: string, path: string): Promise<string | undefined> {
  try {
    await using handle = await openBehind(workspaceDir, path);
    const { size, mtimeMs, ctimeMs } = await handle.stat();
    if (size > maxBytes) return `${size} ${mtimeMs} ${ctimeMs}`;
    return hash('sha256', await handle.readFile(), 'hex');
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
