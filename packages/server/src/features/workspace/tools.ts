import { mkdir } from 'node:fs/promises';
import * as z from 'zod';
import { AppError } from '../../kernel/app-error.ts';
import { readFileInside, writeFileInside } from '../../kernel/safe-path.ts';
import type { Tool, ToolResult } from '../../runtime/tool.ts';

/** Below what the loop would cut out of a result, so that no line is lost between two reads. */
const maxShownCharacters = 48_000;
const maxWriteBytes = 1024 * 1024;
/** A file may be longer than what is shown of it: the rest is reached by `offset`. */
const maxFileBytes = 16 * 1024 * 1024;

const path = z.string().min(1).describe('Path of the file, relative to the workspace folder, e.g. "notes/today.md".');

const readArgs = z.strictObject({
  path,
  offset: z.int().min(1).default(1).describe('First line to show, counted from 1.'),
  limit: z.int().min(1).max(10_000).default(2000).describe('Lines to show.'),
});

const writeArgs = z.strictObject({
  path,
  content: z.string().describe('The whole new content of the file.'),
});

/** `read` and `write` in the agent's workspace folder, which is made with the first file (0700). */
export function createWorkspaceTools(): readonly Tool[] {
  const read: Tool<typeof readArgs> = {
    name: 'read',
    description: 'Shows a text file of your workspace folder.',
    args: readArgs,
    risk: 'read',
    effect: 'pure',
    timeoutMs: 10_000,
    async run({ path: relative, offset, limit }, context) {
      const bytes = await readFileInside(context.workspaceDir, relative, { maxBytes: maxFileBytes });
      if (bytes.includes(0)) throw new AppError('unsupported_media_type', 'The file is not text');
      return { ...showLines(bytes.toString(), offset, limit), outside: { source: `workspace file ${relative}` } };
    },
  };
  const write: Tool<typeof writeArgs> = {
    name: 'write',
    description: 'Writes a text file of your workspace folder: makes it, or replaces its whole content. Missing folders are made.',
    args: writeArgs,
    risk: 'write',
    effect: 'idempotent',
    timeoutMs: 10_000,
    async run({ path: relative, content }, context) {
      await mkdir(context.workspaceDir, { recursive: true, mode: 0o700 });
      await writeFileInside(context.workspaceDir, relative, content, { maxBytes: maxWriteBytes });
      return { content: `Wrote ${Buffer.byteLength(content)} bytes to ${relative}` };
    },
  };
  return [read, write];
}

function showLines(text: string, offset: number, limit: number): ToolResult {
  if (text === '') return { content: '(the file is empty)' };
  const lines = text.split('\n');
  if (text.endsWith('\n')) lines.pop();
  if (offset > lines.length) throw new AppError('invalid_params', `offset: the file has ${lines.length} lines`);
  const shown: string[] = [];
  let characters = 0;
  for (const line of lines.slice(offset - 1, offset - 1 + limit)) {
    characters += line.length + 1;
    if (characters > maxShownCharacters && shown.length > 0) break;
    shown.push(line);
  }
  const last = offset - 1 + shown.length;
  const content = shown.join('\n');
  const note =
    last < lines.length || offset > 1
      ? `\n[lines ${offset} to ${last} of ${lines.length}${last < lines.length ? `; go on with offset ${last + 1}` : ''}]`
      : '';
  return { content: `${content}${note}` };
}
