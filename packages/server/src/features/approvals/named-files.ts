import { hash } from 'node:crypto';
import { AppError } from '../../kernel/app-error.ts';
import { openInside } from '../../kernel/safe-path.ts';

const maxNameCharacters = 400;
/** A larger file counts by its size and times, which a command cannot set back. */
const maxBytes = 1024 * 1024;
/** What is written is shown itself: a name in it names nothing that runs. */
const contents: ReadonlySet<string> = new Set(['content', 'newText', 'oldText', 'text', 'message']);

/** SHA-256 over the files of the workspace that the arguments of a call name, with their names: another content makes another call of it. */
export async function digestNamedFiles(args: unknown, workspaceDir: string): Promise<string> {
  const cwd = typeof args === 'object' && args !== null ? Reflect.get(args, 'cwd') : undefined;
  const found: string[] = [];
  // All of them, because a script must not hide behind many words; the arguments that can be approved are bounded.
  for (const name of [...new Set(wordsIn(args))].toSorted())
    for (const path of pathsOf(name, typeof cwd === 'string' ? cwd : '')) {
      const digest = await digestOf(workspaceDir, path);
      if (digest !== undefined) found.push(`${path}\0${digest}`);
    }
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
  const inside = (path: string) => path.replace(/^\/workspace\//, '').replace(/^(?:\.\/)+/, '');
  const own = inside(name);
  const folder = inside(cwd).replace(/\/$/, '');
  return folder === '' || folder === '/workspace' || name.startsWith('/') ? [own] : [own, `${folder}/${own}`];
}

async function digestOf(workspaceDir: string, path: string): Promise<string | undefined> {
  try {
    await using handle = await openInside(workspaceDir, path);
    const { size, mtimeMs, ctimeMs } = await handle.stat();
    if (size > maxBytes) return `${size} ${mtimeMs} ${ctimeMs}`;
    return hash('sha256', await handle.readFile(), 'hex');
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
