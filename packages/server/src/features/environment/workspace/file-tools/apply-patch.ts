import { AppError } from '../../../../kernel/app-error.ts';
import { entryInside, removeInside, writeFileInside } from '../../../../kernel/safe-path.ts';
import { applyHunks, type PatchStep } from './patch.ts';
import { writablePath } from './protected-paths.ts';
import { maxWriteBytes, readText } from './text-file.ts';

/** One file before and after the patch; undefined: the file does not exist. */
interface FileChange {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** The file whose text it takes over. */
  readonly from?: string;
}

/** Origin of the text of files. */
export interface PatchNotes {
  isTainted(from: string | undefined): Promise<boolean>;
  /** `text` is undefined when the file is deleted. */
  mark(path: string, tainted: boolean, text: string | undefined): Promise<void>;
}

const maxTotalCharacters = 8 * 1024 * 1024;

/** Applies all steps or none: reads and checks everything first, and rolls back when a write fails. Returns one line per step. */
export async function applyPatch(root: string, steps: readonly PatchStep[], notes: PatchNotes): Promise<readonly string[]> {
  const { changes, lines } = await plan(root, steps);
  const written: FileChange[] = [];
  const tainted = await Promise.all(changes.map(({ from }) => notes.isTainted(from)));
  const noteAll = async (isWritten: boolean) => {
    for (const [index, { path, after }] of changes.entries())
      if ((after !== undefined && tainted[index] === true) !== isWritten) await notes.mark(path, tainted[index] === true, after);
  };
  await noteAll(false);
  try {
    for (const change of changes) {
      written.push(change);
      await put(root, change.path, change.after);
    }
    await noteAll(true);
  } catch (error) {
    for (const { path, before } of written.toReversed()) await put(root, path, before).catch(() => {});
    throw error;
  }
  return lines;
}

async function put(root: string, path: string, text: string | undefined): Promise<void> {
  if (text === undefined) await removeInside(root, path);
  else await writeFileInside(root, path, text, { maxBytes: maxWriteBytes });
}

async function plan(
  root: string,
  steps: readonly PatchStep[],
): Promise<{ readonly changes: readonly FileChange[]; readonly lines: readonly string[] }> {
  const changes: FileChange[] = [];
  const lines: string[] = [];
  const named = new Set<string>();
  let total = 0;
  const name = (text: string): string => {
    const path = writablePath(text);
    // Names that differ only in case are one file on some systems.
    if (named.has(path.toLowerCase())) throw new AppError('invalid_params', `${path} is named twice: put all its changes into one update`);
    named.add(path.toLowerCase());
    return path;
  };
  const take = (change: FileChange) => {
    total += (change.before?.length ?? 0) + (change.after?.length ?? 0);
    if (Buffer.byteLength(change.after ?? '') > maxWriteBytes)
      throw new AppError('payload_too_large', `${change.path} would be larger than ${maxWriteBytes} bytes`);
    if (total > maxTotalCharacters) throw new AppError('payload_too_large', `The patch touches more than ${maxTotalCharacters} characters`);
    changes.push(change);
  };
  const mustBeFree = async (path: string) => {
    const found = await entryInside(root, path);
    if (found === 'missing') return;
    throw found === 'other'
      ? new AppError('not_found', `${path} cannot be used here`)
      : new AppError('conflict', `${path} exists already: update it, or choose another name`);
  };
  for (const step of steps) {
    const path = name(step.path);
    if (step.kind === 'add') {
      await mustBeFree(path);
      take({ path, before: undefined, after: step.content });
      lines.push(`added ${path}`);
    } else if (step.kind === 'delete') {
      take({ path, before: await readText(root, path), after: undefined });
      lines.push(`deleted ${path}`);
    } else {
      const before = await readText(root, path);
      const after = applyHunks(path, before, step.hunks);
      if (step.moveTo === undefined) {
        take({ path, before, after, from: path });
        lines.push(`updated ${path}`);
      } else {
        const target = name(step.moveTo);
        await mustBeFree(target);
        take({ path: target, before: undefined, after, from: path });
        take({ path, before, after: undefined });
        lines.push(`moved ${path} to ${target}`);
      }
    }
  }
  return { changes, lines };
}
