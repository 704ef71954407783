import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { listFolderInside, notHere, plainPath } from '../../../../kernel/safe-path.ts';
import { isOwnResult } from '../../../../runtime/off-load.ts';
import type { Tool, ToolContext, ToolResult } from '../../../../runtime/tool.ts';
import type { FileTaints } from '../api.ts';
import type { Found, Search } from '../search/search.ts';
import { isInternal } from '../taint/internal-names.ts';
import { describe, filePath, fileTimeoutMs } from './described.ts';
import { readLines } from './read-lines.ts';

/** Below the limit of the turn loop on results, so that no line is lost between two reads. */
const maxShownCharacters = 48_000;
/** A file may be longer than one result: `offset` reaches the rest. */
const maxFileBytes = 16 * 1024 * 1024;
const maxListed = 1000;
const searchTimeoutMs = 15_000;

const folder = once(() =>
  z.string().min(1).max(4096).default('.').describe('Folder to look in, relative to the workspace folder; all of it when left out.'),
);

const readArgs = once(() =>
  z.strictObject({
    path: filePath,
    offset: z.int().min(1).default(1).describe('First line to show, counted from 1.'),
    limit: z.int().min(1).max(10_000).default(2000).describe('Lines to show.'),
  }),
);
const listArgs = once(() => z.strictObject({ path: folder() }));
const findArgs = once(() =>
  z.strictObject({
    pattern: z.string().min(1).max(500).describe('Glob such as "*.md" (in any folder), "src/**/*.ts" or "report-{a,b}.txt".'),
    path: folder(),
    limit: z.int().min(1).max(2000).default(500).describe('Paths to show.'),
  }),
);
const grepArgs = once(() =>
  z.strictObject({
    pattern: z.string().min(1).max(2000).describe('Regular expression (JavaScript), matched against each line.'),
    path: folder().describe('Folder or file to look in, relative to the workspace folder; all of it when left out.'),
    glob: z.string().min(1).max(500).optional().describe('Only files that match, e.g. "*.ts".'),
    literal: z.boolean().default(false).describe('Takes the pattern as plain text.'),
    ignoreCase: z.boolean().default(false),
    context: z.int().min(0).max(10).default(0).describe('Lines to show before and after each hit.'),
    limit: z.int().min(1).max(1000).default(200).describe('Hits to show.'),
  }),
);

export interface ReadToolDeps {
  readonly search: Search;
  readonly taints: FileTaints;
}

/** Shows a text file, in parts. */
export function createRead(taints: FileTaints): Tool<ReturnType<typeof readArgs>> {
  return {
    name: 'read',
    description: 'Shows a text file of your workspace folder.',
    get args() {
      return readArgs();
    },
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
}

/** Lists a folder. */
export function createList(taints: FileTaints): Tool<ReturnType<typeof listArgs>> {
  return {
    name: 'ls',
    description: 'Lists a folder of your workspace folder.',
    get args() {
      return listArgs();
    },
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
        outside: await outsideOf(taints, context, 'names', relative),
      };
    },
  };
}

/** Finds files by their names. */
export function createFind({ search, taints }: ReadToolDeps): Tool<ReturnType<typeof findArgs>> {
  return {
    name: 'find',
    description: 'Finds files of your workspace folder by their names. Does not look into node_modules.',
    get args() {
      return findArgs();
    },
    risk: 'read',
    effect: 'pure',
    timeoutMs: searchTimeoutMs,
    describe: (args) => describe('find', args.pattern, `in ${args.path}`),
    async run({ pattern, path: relative, limit }, context) {
      const request = { root: context.workspaceDir, path: relative, glob: pattern, expression: undefined, limit };
      return showFound(await search(request, context.signal), await outsideOf(taints, context, 'names', relative), 'No file has such a name');
    },
  };
}

/** Searches the lines of text files. */
export function createGrep({ search, taints }: ReadToolDeps): Tool<ReturnType<typeof grepArgs>> {
  return {
    name: 'grep',
    description: 'Searches the lines of text files of your workspace folder. Does not look into node_modules, nor into files of more than 2 MiB.',
    get args() {
      return grepArgs();
    },
    risk: 'read',
    effect: 'pure',
    timeoutMs: searchTimeoutMs,
    describe: (args) => describe('grep', args.pattern, `in ${args.path}`),
    async run({ pattern, path: relative, glob, literal, ignoreCase, context: around, limit }, context) {
      const expression = { source: pattern, literal, ignoreCase, context: around };
      const request = { root: context.workspaceDir, path: relative, glob, expression, limit };
      return showFound(await search(request, context.signal), await outsideOf(taints, context, 'lines', relative), 'No line matches');
    },
  };
}

async function outsideOf(taints: FileTaints, context: ToolContext, what: 'names' | 'lines', folder: string) {
  return {
    source: `workspace file ${what} in ${folder}`,
    clean: !(await taints.isTaintedBelow(context, folder.replace(/^\.\/$/, '.').replace(/(?<=[^/])\/$/, ''))),
  };
}

function showFound({ lines, found, stopped }: Found, outside: ToolResult['outside'], nothing: string): ToolResult {
  const reason = { limit: 'there are more', files: 'too many files to search them all', size: 'too much text to search all of it' };
  const note = stopped === undefined ? '' : `\n[stopped after ${found}: ${reason[stopped]}; search a smaller folder, or narrow the pattern]`;
  if (lines.length === 0) return { content: `${nothing}${note}` };
  return { content: `${lines.join('\n')}${note}`, ...(outside !== undefined && { outside }) };
}
