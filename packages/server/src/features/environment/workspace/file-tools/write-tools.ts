import { mkdir } from 'node:fs/promises';
import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { writeFileInside } from '../../../../kernel/safe-path.ts';
import type { Tool, ToolContext, ToolResult } from '../../../../runtime/tool.ts';
import type { FileTaints, WorkspaceCapacity } from '../api.ts';
import { applyPatch, type PatchNotes } from './apply-patch.ts';
import { describe, filePath, fileTimeoutMs } from './described.ts';
import { replaceExact } from './edit.ts';
import type { Exclusive } from './exclusive.ts';
import { parsePatch } from './patch.ts';
import { promptFileAt, writablePath } from './protected-paths.ts';
import { maxWriteBytes, readText } from './text-file.ts';

const writeArgs = once(() =>
  z.strictObject({
    path: filePath,
    content: z.string().describe('The whole new content of the file.'),
  }),
);
const editArgs = once(() =>
  z.strictObject({
    path: filePath,
    oldText: z.string().min(1).describe('Text of the file to replace, copied exactly, with enough lines around it to be unique.'),
    newText: z.string().describe('The replacement.'),
    replaceAll: z.boolean().default(false).describe('Replaces every match.'),
  }),
);
const patchArgs = once(() =>
  z.strictObject({
    patch: z
      .string()
      .min(1)
      .max(maxWriteBytes)
      .describe(
        '"*** Begin Patch", then for each file "*** Add File: <path>" with lines that begin with "+", "*** Delete File: <path>", or "*** Update File: <path>" (then "*** Move to: <path>" to rename) with changes: "@@" (and a line of the file above, if needed), context lines that begin with " ", lines to remove with "-", lines to add with "+"; finally "*** End Patch".',
      ),
  }),
);
export interface WriteToolDeps {
  readonly exclusive: Exclusive;
  readonly capacity: Pick<WorkspaceCapacity, 'assertCapacity'>;
  readonly taints: FileTaints;
  /** Called when a file of this agent was changed. */
  readonly changed: (agentId: string) => void;
}

/** Writes a whole file. */
export function createWrite(deps: WriteToolDeps): Tool<ReturnType<typeof writeArgs>> {
  return {
    name: 'write',
    description: 'Writes a text file of your workspace folder: creates it, or replaces its whole content. Missing folders are created.',
    get args() {
      return writeArgs();
    },
    risk: 'write',
    effect: 'idempotent',
    timeoutMs: fileTimeoutMs,
    mustAsk: (args) => changesPrompt([args.path]),
    describe: (args) => describe('write', args.path, `(${Buffer.byteLength(args.content)} bytes)`),
    run: ({ path: relative, content }, context) =>
      changing(deps, context, { bytes: Buffer.byteLength(content), files: 1 }, async () => {
        await put(deps.taints, context, writablePath(relative), { content, tainted: context.tainted() });
        return { content: `Wrote ${Buffer.byteLength(content)} bytes to ${relative}` };
      }),
  };
}

/** Replaces text in a file. */
export function createEdit(deps: WriteToolDeps): Tool<ReturnType<typeof editArgs>> {
  return {
    name: 'edit',
    description: 'Replaces text in a file of your workspace folder: oldText must occur exactly once, unless replaceAll is set. Read the file first.',
    get args() {
      return editArgs();
    },
    risk: 'write',
    effect: 'once',
    timeoutMs: fileTimeoutMs,
    mustAsk: (args) => changesPrompt([args.path]),
    describe: (args) => describe('edit', args.path),
    run: ({ path: relative, ...replacement }, context) =>
      changing(deps, context, { bytes: Buffer.byteLength(replacement.newText), files: 1 }, async () => {
        const target = writablePath(relative);
        const { text, count } = replaceExact(await readText(context.workspaceDir, target), replacement);
        const tainted = context.tainted() || (await deps.taints.isTainted(context, target));
        await put(deps.taints, context, target, { content: text, tainted });
        return { content: `Replaced ${count === 1 ? 'one match' : `${count} matches`} in ${relative}` };
      }),
  };
}

/** Applies a patch to several files, completely or not at all. */
export function createApplyPatch(deps: WriteToolDeps): Tool<ReturnType<typeof patchArgs>> {
  return {
    name: 'apply_patch',
    description: 'Adds, changes, moves and deletes files of your workspace folder by one patch: all of it is applied, or nothing.',
    get args() {
      return patchArgs();
    },
    risk: 'write',
    effect: 'once',
    timeoutMs: 30_000,
    mustAsk: (args) => changesPrompt(pathsOf(args.patch)),
    describe: (args) => describe('apply_patch', pathsOf(args.patch).join(', ')),
    run(args, context) {
      const steps = parsePatch(args.patch);
      // A patch that only deletes frees space.
      const isGrowing = steps.some(({ kind }) => kind !== 'delete');
      const wanted = { bytes: isGrowing ? Buffer.byteLength(args.patch) : 0, files: isGrowing ? steps.length : 0 };
      return changing(deps, context, wanted, async () => ({
        content: (await applyPatch(context.workspaceDir, steps, notesOf(deps.taints, context))).join('\n'),
      }));
    },
  };
}

/** Serializes changes of one workspace, so that none overwrites another. */
function changing(
  { exclusive, capacity, changed }: WriteToolDeps,
  context: ToolContext,
  wanted: { readonly bytes: number; readonly files: number },
  work: () => Promise<ToolResult>,
): Promise<ToolResult> {
  return exclusive(context.workspaceDir, context, async () => {
    if (context.signal.aborted) throw new AppError('cancelled', 'The turn was stopped');
    if (wanted.bytes + wanted.files > 0) await capacity.assertCapacity(context.workspaceDir, wanted);
    await mkdir(context.workspaceDir, { recursive: true, mode: 0o700 });
    return work().finally(() => changed(context.agentId));
  });
}

async function put(
  taints: FileTaints,
  context: ToolContext,
  path: string,
  { content, tainted }: { readonly content: string; readonly tainted: boolean },
): Promise<void> {
  if (tainted) await taints.mark(context, path, tainted, content);
  await writeFileInside(context.workspaceDir, path, content, { maxBytes: maxWriteBytes });
  if (!tainted) await taints.mark(context, path, tainted, content);
}

/** Text that a patch moves keeps its taint, under another name too. */
const notesOf = (taints: FileTaints, context: ToolContext): PatchNotes => ({
  isTainted: async (path) => context.tainted() || (path !== undefined && (await taints.isTainted(context, path))),
  mark: (path, tainted, text) => (text === undefined ? taints.forget(context, path) : taints.mark(context, path, tainted, text)),
});

function changesPrompt(paths: readonly string[]): string | undefined {
  const name = paths.map(promptFileAt).find((one) => one !== undefined);
  return name === undefined ? undefined : `${name} is part of the prompt of every conversation with this agent`;
}

/** Returns all paths that a patch changes; none when it is not valid. */
function pathsOf(patch: string): readonly string[] {
  try {
    return parsePatch(patch).flatMap((step) => (step.kind === 'update' && step.moveTo !== undefined ? [step.path, step.moveTo] : [step.path]));
  } catch {
    return [];
  }
}
