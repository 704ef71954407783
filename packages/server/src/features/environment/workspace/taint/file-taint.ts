import { createHash } from 'node:crypto';
import { entryInside, plainPath } from '../../../../kernel/safe-path.ts';
import type { FileTaints, Workplace } from '../api.ts';
import { createCommandTaints, type FileTaintsDeps } from './command-taint.ts';
import { digestContent } from './content-digest.ts';
import { foldName, isInternal } from './internal-names.ts';
import { forgetFiles, isTaintedContent, knownFile, markFiles, taintedFiles, type TaintRow } from './taint-store.ts';

/** Shorter contents can be equal by chance. */
const leastDigested = 32;
const keyOf = (path: string) => foldName(plainPath(path));
const foldersAround = (key: string) =>
  ['.', ...key.split('/').map((_, index, names) => names.slice(0, index).join('/'))].filter((name) => name !== '');

/**
 * Tracks which files of workspaces hold text from outside: written by a turn that had read such text, or perhaps by such a command.
 * An unknown file belongs to its owner. Marks follow the content, so that a copy is treated like its source; a file
 * that was changed by other programs keeps its mark.
 */
export function createFileTaints(deps: FileTaintsDeps): FileTaints {
  const { db, clock } = deps;
  const commands = createCommandTaints(deps);

  async function isTainted(place: Workplace, path: string): Promise<boolean> {
    const { agentId, workspaceDir } = place;
    const key = keyOf(path);
    const found = await db.read(knownFile, { agentId, path: key, around: foldersAround(key) });
    const { any, exact, inTree } = found;
    if (!any && found.windows.length === 0) return isInternal(key);
    if (exact?.tainted === 1) return true;
    const digest = await digestContent(workspaceDir, path);
    if (exact !== undefined) return exact.digest !== digest;
    // Results kept before taint was tracked may come from anywhere.
    if (inTree || isInternal(key)) return true;
    const windows = await commands.settled(place, found.windows);
    if (windows.length > 0 && (await commands.mayHaveWritten(place, path, windows))) return true;
    if (digest === undefined) return false;
    return db.read(isTaintedContent, { agentId, digest });
  }

  async function isTaintedBelow(place: Workplace, folder: string): Promise<boolean> {
    const { agentId, workspaceDir } = place;
    const found = await db.read(taintedFiles, { agentId });
    if ((await commands.settled(place, found.windows)).length > 0) return true;
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
    const key = keyOf(path);
    if (tainted && !isInternal(key)) await commands.taintRunning(agentId);
    const bytes = Buffer.byteLength(content);
    const digest = tainted && bytes < leastDigested ? null : createHash('sha256').update(content).digest('hex');
    await write(agentId, { path: key, name: plainPath(path), tree: 0, tainted: tainted ? 1 : 0, digest });
  }

  const write = (agentId: string, row: Omit<TaintRow, 'agentId'>) => db.write(markFiles, { agentId, atMs: clock.now(), rows: [row] });

  return {
    isTainted,
    isTaintedBelow,
    mark,
    async forget({ agentId }, path) {
      await db.write(forgetFiles, { agentId, paths: [keyOf(path)] });
    },
    async committed(place) {
      if (!(await isTaintedBelow(place, '.'))) return;
      await write(place.agentId, { path: '.git', name: '.git', tree: 1, tainted: 1, digest: null });
    },
    async isRepositoryTainted({ agentId }) {
      return (await db.read(knownFile, { agentId, path: '.git', around: [] })).inTree;
    },

    beginCommand: (place, mayBeTainted) => commands.begin(place, async () => mayBeTainted || isTaintedBelow(place, '.')),
  };
}
