import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { AppError } from '../../kernel/app-error.ts';
import { findChangedFiles } from '../../kernel/changed-files.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Db } from '../../kernel/db/db.ts';
import { newId } from '../../kernel/ids.ts';
import { entryInside, listFolderInside, openInside, plainPath, removeInside, statInside, writeFileInside } from '../../kernel/safe-path.ts';
import type { CommandTaint, FileTaints, Workplace } from './api.ts';
import { foldName, isInternal } from './internal-names.ts';
import {
  closeWindow,
  forgetFiles,
  isTaintedContent,
  knownFile,
  markFiles,
  openWindow,
  taintedFiles,
  type TaintRow,
  type Window,
} from './taint-store.ts';

/** What file tools read. */
const maxDigested = 16 * 1024 * 1024;
/** Shorter contents are alike by chance. */
const leastDigested = 32;
/** File systems tell time in steps. */
const slackMs = 2000;
/** Files of one command that get rows of their own; of more, the folders do. */
const maxRows = 300;

const keyOf = (path: string) => foldName(plainPath(path));
const foldersAround = (key: string) =>
  ['.', ...key.split('/').map((_, index, names) => names.slice(0, index).join('/'))].filter((name) => name !== '');

/**
 * Knows which files of workspaces hold text from outside: those that a turn wrote that had read such text, or a command that may
 * have. A file of which nothing is known is its owner's. What is known follows the content, so that a copy is what it is a copy of;
 * a file that was changed from elsewhere stays what it was.
 */
export function createFileTaints({ db, clock }: { readonly db: Db; readonly clock: Clock }): FileTaints {
  /** Of commands that run in this process. */
  const live = new Set<string>();

  async function isTainted(place: Workplace, path: string): Promise<boolean> {
    const { agentId, workspaceDir } = place;
    const key = keyOf(path);
    const found = await db.read(knownFile, { agentId, path: key, around: foldersAround(key) });
    const { any, exact, inTree } = found;
    if (!any && found.windows.length === 0) return isInternal(key);
    if (exact?.tainted === 1) return true;
    const digest = await digestOf(workspaceDir, path);
    if (exact !== undefined) return exact.digest !== digest;
    // Results that were kept before this was known may be of anything.
    if (inTree || isInternal(key)) return true;
    const since = Math.min(...(await settled(place, found.windows)).map(({ sinceMs }) => sinceMs));
    if (((await statInside(workspaceDir, path))?.ctimeMs ?? Infinity) >= since) return true;
    if (digest === undefined) return false;
    return db.read(isTaintedContent, { agentId, digest });
  }

  /** Of commands that an earlier run of the daemon took with it, what they wrote is looked for now. */
  async function settled(place: Workplace, windows: readonly Window[]): Promise<readonly Window[]> {
    for (const window of windows) if (!live.has(window.id)) await settle(place, window, window.sinceMs);
    return windows;
  }

  async function settle({ workspaceDir }: Workplace, { id, agentId }: Window, sinceMs: number): Promise<void> {
    const changed = await findChangedFiles(workspaceDir, await writableFolders(workspaceDir), sinceMs);
    const files = changed.files.length <= maxRows ? changed.files : [];
    const folders = [...changed.folders, ...(files.length === 0 ? foldersOf(changed.files) : [])];
    const rows: Omit<TaintRow, 'agentId'>[] = folders.map((path) => ({ path: foldName(path), name: path, tree: 1, tainted: 1, digest: null }));
    for (const path of files) rows.push({ path: keyOf(path), name: path, tree: 0, tainted: 1, digest: (await digestOf(workspaceDir, path)) ?? null });
    await db.write(closeWindow, { agentId, id, rows });
  }

  async function isTaintedBelow(place: Workplace, folder: string): Promise<boolean> {
    const { agentId, workspaceDir } = place;
    const found = await db.read(taintedFiles, { agentId });
    if ((await settled(place, found.windows)).length > 0) return true;
    const key = folder === '.' ? '' : keyOf(folder);
    const rows = found.rows.filter(({ path, tree }) => {
      if (path === '.git' ? key !== '' : isInternal(path)) return false;
      return key === '' || path === key || path.startsWith(`${key}/`) || (tree === 1 && (path === '.' || key.startsWith(`${path}/`)));
    });
    const gone: string[] = [];
    for (const { path, name } of rows) {
      if (path === '.' || path === '.git' || (await entryInside(workspaceDir, name)) !== 'missing') return true;
      gone.push(path);
    }
    if (gone.length > 0) await db.write(forgetFiles, { agentId, paths: gone });
    return false;
  }

  async function mark({ agentId }: Workplace, path: string, tainted: boolean, content: string | Uint8Array): Promise<void> {
    const bytes = Buffer.byteLength(content);
    const digest = tainted && bytes < leastDigested ? null : createHash('sha256').update(content).digest('hex');
    await db.write(markFiles, { agentId, rows: [{ path: keyOf(path), name: plainPath(path), tree: 0, tainted: tainted ? 1 : 0, digest }] });
  }

  return {
    isTainted,
    isTaintedBelow,
    mark,
    async forget({ agentId }, path) {
      await db.write(forgetFiles, { agentId, paths: [keyOf(path)] });
    },
    async committed(place) {
      if (!(await isTaintedBelow(place, '.'))) return;
      await db.write(markFiles, { agentId: place.agentId, rows: [{ path: '.git', name: '.git', tree: 1, tainted: 1, digest: null }] });
    },
    async isRepositoryTainted({ agentId }) {
      return (await db.read(knownFile, { agentId, path: '.git', around: [] })).inTree;
    },

    async beginCommand(place, mayBeTainted) {
      const startedMs = clock.monotonic();
      let window: Window | undefined;
      let opening: Promise<void> | undefined;
      let ending: Promise<void> | undefined;
      const open = async () => {
        window = { id: newId('tw'), agentId: place.agentId, sinceMs: (await timeOf(place.workspaceDir)) - slackMs };
        live.add(window.id);
        await db.write(openWindow, window);
      };
      const end = async () => {
        await opening;
        if (window === undefined) return;
        // The clock of the machine may have been set back meanwhile.
        const sinceMs = Math.min(window.sinceMs, (await timeOf(place.workspaceDir)) - (clock.monotonic() - startedMs) - slackMs);
        const { id } = window;
        await settle(place, window, sinceMs).finally(() => live.delete(id));
      };
      const command: CommandTaint = {
        isClean: () => opening === undefined,
        taint: () => (opening ??= open()),
        end: () => (ending ??= end()),
      };
      if (mayBeTainted || (await isTaintedBelow(place, '.'))) await command.taint();
      return command;
    },
  };
}

/** The time of the file system, in which its files have theirs. */
async function timeOf(workspaceDir: string): Promise<number> {
  await mkdir(workspaceDir, { recursive: true, mode: 0o700 });
  const marker = `.gatehouse/${newId('tw')}`;
  await writeFileInside(workspaceDir, marker, '', { maxBytes: 1 });
  const stat = await statInside(workspaceDir, marker);
  await removeInside(workspaceDir, marker);
  return stat?.ctimeMs ?? -Infinity;
}

/** Where commands may write. */
async function writableFolders(workspaceDir: string): Promise<readonly string[]> {
  const { entries } = await listFolderInside(workspaceDir, '.', 10_000);
  return entries.flatMap(({ name, kind }) => (kind === 'directory' && !name.startsWith('.') ? [name] : []));
}

/** The deepest folders around many files of which there are few. */
function foldersOf(files: readonly string[]): readonly string[] {
  for (let depth = 8; depth > 1; depth -= 1) {
    const folders = new Set(files.map((file) => file.split('/').slice(0, -1).slice(0, depth).join('/')));
    if (folders.size <= maxRows) return [...folders];
  }
  return [...new Set(files.map((file) => file.split('/')[0] ?? '.'))];
}

/** Undefined for what no tool reads. */
async function digestOf(workspaceDir: string, path: string): Promise<string | undefined> {
  try {
    await using handle = await openInside(workspaceDir, path);
    if ((await handle.stat()).size > maxDigested) return undefined;
    const hash = createHash('sha256');
    for await (const part of handle.createReadStream({ autoClose: false, end: maxDigested })) hash.update(part);
    return hash.digest('hex');
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
