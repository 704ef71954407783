import { mkdir } from 'node:fs/promises';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { listFolderInside, notHere, plainPath, writeFileInside } from '../../../../kernel/safe-path.ts';
import { isOwnResult } from '../../../../runtime/off-load.ts';
import type { Tool, ToolContext, ToolResult } from '../../../../runtime/tool.ts';
import { applyPatch, type PatchNotes } from './apply-patch.ts';
import { replaceExact } from './edit.ts';
import type { FileTaints } from '../api.ts';
import type { Exclusive } from './exclusive.ts';
import { parsePatch } from './patch.ts';
import type { WorkspaceCapacity } from '../api.ts';
import { isInternal } from '../taint/internal-names.ts';
import { promptFileAt, writablePath } from './protected-paths.ts';
import { readLines } from './read-lines.ts';
import type { Found, Search } from '../search/search.ts';
import { maxWriteBytes, readText } from './text-file.ts';

/** Below the limit of the turn loop on results, so that no line is lost between two reads. */
const maxShownCharacters = 48_000;
/** A file may be longer than one result: `offset` reaches the rest. */
const maxFileBytes = 16 * 1024 * 1024;
const maxListed = 1000;
const fileTimeoutMs = 10_000;
const searchTimeoutMs = 15_000;

const path = z.string().min(1).max(4096).describe('Path of the file, relative to the workspace folder, e.g. "notes/today.md".');
const folder = z.string().min(1).max(4096).default('.').describe('Folder to look in, relative to the workspace folder; all of it when left out.');

const readArgs = z.strictObject({
  path,
  offset: z.int().min(1).default(1).describe('First line to show, counted from 1.'),
  limit: z.int().min(1).max(10_000).default(2000).describe('Lines to show.'),
});
const writeArgs = z.strictObject({
  path,
  content: z.string().describe('The whole new content of the file.'),
});
const editArgs = z.strictObject({
  path,
  oldText: z.string().min(1).describe('Text of the file to replace, copied exactly, with enough lines around it to be unique.'),
  newText: z.string().describe('The replacement.'),
  replaceAll: z.boolean().default(false).describe('Replaces every match.'),
});
const patchArgs = z.strictObject({
  patch: z
    .string()
    .min(1)
    .max(maxWriteBytes)
    .describe(
      '"*** Begin Patch", then for each file "*** Add File: <path>" with lines that begin with "+", "*** Delete File: <path>", or "*** Update File: <path>" (then "*** Move to: <path>" to rename) with changes: "@@" (and a line of the file above, if needed), context lines that begin with " ", lines to remove with "-", lines to add with "+"; finally "*** End Patch".',
    ),
});
const listArgs = z.strictObject({ path: folder });
const findArgs = z.strictObject({
  pattern: z.string().min(1).max(500).describe('Glob such as "*.md" (in any folder), "src/**/*.ts" or "report-{a,b}.txt".'),
  path: folder,
  limit: z.int().min(1).max(2000).default(500).describe('Paths to show.'),
});
const grepArgs = z.strictObject({
  pattern: z.string().min(1).max(2000).describe('Regular expression (JavaScript), matched against each line.'),
  path: folder.describe('Folder or file to look in, relative to the workspace folder; all of it when left out.'),
  glob: z.string().min(1).max(500).optional().describe('Only files that match, e.g. "*.ts".'),
  literal: z.boolean().default(false).describe('Takes the pattern as plain text.'),
  ignoreCase: z.boolean().default(false),
  context: z.int().min(0).max(10).default(0).describe('Lines to show before and after each hit.'),
  limit: z.int().min(1).max(1000).default(200).describe('Hits to show.'),
});

export interface WorkspaceToolDeps {
  readonly exclusive: Exclusive;
  readonly capacity: Pick<WorkspaceCapacity, 'assertCapacity'>;
  readonly search: Search;
  readonly taints: FileTaints;
  /** Called when a file of this agent was changed. */
  readonly changed: (agentId: string) => void;
}

/** Creates the tools for the agent's workspace folder, which is created with the first file (0700). */
export function createWorkspaceTools({ exclusive, capacity, search, taints, changed }: WorkspaceToolDeps): readonly Tool[] {
  /** Serializes changes of one workspace, so that none overwrites another. */
  const changing = (
    context: ToolContext,
    wanted: { readonly bytes: number; readonly files: number },
    work: () => Promise<ToolResult>,
  ): Promise<ToolResult> =>
    exclusive(context.workspaceDir, context, async () => {
      if (context.signal.aborted) throw new AppError('cancelled', 'The turn was stopped');
      if (wanted.bytes + wanted.files > 0) await capacity.assertCapacity(context.workspaceDir, wanted);
      await mkdir(context.workspaceDir, { recursive: true, mode: 0o700 });
      return work().finally(() => changed(context.agentId));
    });

  async function put(context: ToolContext, path: string, content: string, tainted: boolean): Promise<void> {
    if (tainted) await taints.mark(context, path, tainted, content);
    await writeFileInside(context.workspaceDir, path, content, { maxBytes: maxWriteBytes });
    if (!tainted) await taints.mark(context, path, tainted, content);
  }

  async function outsideOf(context: ToolContext, what: 'names' | 'lines', folder: string) {
    return {
      source: `workspace file ${what} in ${folder}`,
      clean: !(await taints.isTaintedBelow(context, folder.replace(/^\.\/$/, '.').replace(/(?<=[^/])\/$/, ''))),
    };
  }

  /** Text that a patch moves keeps its taint, under another name too. */
  const noteOf = (context: ToolContext): PatchNotes => ({
    isTainted: async (path) => context.tainted() || (path !== undefined && (await taints.isTainted(context, path))),
    mark: (path, tainted, text) => (text === undefined ? taints.forget(context, path) : taints.mark(context, path, tainted, text)),
  });

  const read: Tool<typeof readArgs> = {
    name: 'read',
    description: 'Shows a text file of your workspace folder.',
    args: readArgs,
    risk: 'read',
    effect: 'pure',
    timeoutMs: fileTimeoutMs,
    describe: (args) => describe('read', args.path),
    async run({ path: relative, offset, limit }, context) {
      // Repository settings, daemon files and results of other people's turns.
      if (isInternal(plainPath(relative)) && !isOwnResult(plainPath(relative), context)) throw notHere();
      const { lines, total, cutAt } = await readLines(context.workspaceDir, relative, {
        offset,
        limit,
        maxCharacters: maxShownCharacters,
        maxBytes: maxFileBytes,
      });
      // Checked after the text is read: changes made meanwhile are marked by then.
      const clean = !(await taints.isTainted(context, relative));
      if (total === 0) return { content: '(the file is empty)' };
      if (offset > total) throw new AppError('invalid_params', `offset: the file has ${total} lines`);
      const last = offset - 1 + lines.length;
      const long = cutAt === undefined ? '' : `\n[line ${last} is longer: only its first ${cutAt} characters are shown]`;
      const part = `[lines ${offset} to ${last} of ${total}${last < total ? `; continue with offset ${last + 1}` : ''}]`;
      const note = last < total || offset > 1 ? `\n${part}` : '';
      return { content: `${lines.join('\n')}${long}${note}`, outside: { source: `workspace file ${relative}`, clean } };
    },
  };

  const write: Tool<typeof writeArgs> = {
    name: 'write',
    description: 'Writes a text file of your workspace folder: creates it, or replaces its whole content. Missing folders are created.',
    args: writeArgs,
    risk: 'write',
    effect: 'idempotent',
    timeoutMs: fileTimeoutMs,
    mustAsk: (args) => changesPrompt([args.path]),
    describe: (args) => describe('write', args.path, `(${Buffer.byteLength(args.content)} bytes)`),
    run: ({ path: relative, content }, context) =>
      changing(context, { bytes: Buffer.byteLength(content), files: 1 }, async () => {
        await put(context, writablePath(relative), content, context.tainted());
        return { content: `Wrote ${Buffer.byteLength(content)} bytes to ${relative}` };
      }),
  };

  const edit: Tool<typeof editArgs> = {
    name: 'edit',
    description: 'Replaces text in a file of your workspace folder: oldText must occur exactly once, unless replaceAll is set. Read the file first.',
    args: editArgs,
    risk: 'write',
    effect: 'once',
    timeoutMs: fileTimeoutMs,
    mustAsk: (args) => changesPrompt([args.path]),
    describe: (args) => describe('edit', args.path),
    run: ({ path: relative, ...replacement }, context) =>
      changing(context, { bytes: Buffer.byteLength(replacement.newText), files: 1 }, async () => {
        const target = writablePath(relative);
        const { text, count } = replaceExact(await readText(context.workspaceDir, target), replacement);
        await put(context, target, text, context.tainted() || (await taints.isTainted(context, target)));
        return { content: `Replaced ${count === 1 ? 'one match' : `${count} matches`} in ${relative}` };
      }),
  };

  const patch: Tool<typeof patchArgs> = {
    name: 'apply_patch',
    description: 'Adds, changes, moves and deletes files of your workspace folder by one patch: all of it is applied, or nothing.',
    args: patchArgs,
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
      return changing(context, wanted, async () => ({ content: (await applyPatch(context.workspaceDir, steps, noteOf(context))).join('\n') }));
    },
  };

  const list: Tool<typeof listArgs> = {
    name: 'ls',
    description: 'Lists a folder of your workspace folder.',
    args: listArgs,
    risk: 'read',
    effect: 'pure',
    timeoutMs: fileTimeoutMs,
    describe: (args) => describe('ls', args.path),
    async run({ path: relative }, context) {
      const place = relative.replace(/^\.\/$/, '.').replace(/(?<=[^/])\/$/, '');
      // It holds results of other conversations, under names known only to them.
      if (isInternal(place)) throw notHere();
      const { entries, more } = await listFolderInside(context.workspaceDir, place, maxListed);
      const lines = entries
        .filter(({ name }) => !isInternal(name))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, kind, size }) => (kind === 'directory' ? `${name}/` : `${name} (${size} bytes)`));
      if (lines.length === 0) return { content: '(the folder is empty)' };
      return {
        content: `${lines.join('\n')}${more ? `\n[only ${maxListed} of its entries are shown]` : ''}`,
        outside: await outsideOf(context, 'names', relative),
      };
    },
  };

  const find: Tool<typeof findArgs> = {
    name: 'find',
    description: 'Finds files of your workspace folder by their names. Does not look into node_modules.',
    args: findArgs,
    risk: 'read',
    effect: 'pure',
    timeoutMs: searchTimeoutMs,
    describe: (args) => describe('find', args.pattern, `in ${args.path}`),
    async run({ pattern, path: relative, limit }, context) {
      const request = { root: context.workspaceDir, path: relative, glob: pattern, expression: undefined, limit };
      return showFound(await search(request, context.signal), await outsideOf(context, 'names', relative), 'No file has such a name');
    },
  };

  const grep: Tool<typeof grepArgs> = {
    name: 'grep',
    description: 'Searches the lines of text files of your workspace folder. Does not look into node_modules, nor into files of more than 2 MiB.',
    args: grepArgs,
    risk: 'read',
    effect: 'pure',
    timeoutMs: searchTimeoutMs,
    describe: (args) => describe('grep', args.pattern, `in ${args.path}`),
    async run({ pattern, path: relative, glob, literal, ignoreCase, context: around, limit }, context) {
      const expression = { source: pattern, literal, ignoreCase, context: around };
      const request = { root: context.workspaceDir, path: relative, glob, expression, limit };
      return showFound(await search(request, context.signal), await outsideOf(context, 'lines', relative), 'No line matches');
    },
  };

  return [read, write, edit, patch, list, find, grep];
}

function describe(what: string, about: string, more = ''): string {
  const line = `${what} ${about.replaceAll(/[\s\p{C}]+/gu, ' ')}`;
  return `${line.length > 150 ? `${line.slice(0, 150).toWellFormed()}…` : line}${more === '' ? '' : ` ${more.slice(0, 45).toWellFormed()}`}`;
}

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

function showFound({ lines, found, stopped }: Found, outside: ToolResult['outside'], nothing: string): ToolResult {
  const reason = { limit: 'there are more', files: 'too many files to search them all', size: 'too much text to search all of it' };
  const note = stopped === undefined ? '' : `\n[stopped after ${found}: ${reason[stopped]}; search a smaller folder, or narrow the pattern]`;
  if (lines.length === 0) return { content: `${nothing}${note}` };
  return { content: `${lines.join('\n')}${note}`, ...(outside !== undefined && { outside }) };
}
