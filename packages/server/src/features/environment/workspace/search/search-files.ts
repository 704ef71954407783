import { AppError } from '../../../../kernel/app-error.ts';
import { entryInside, listFolderInside, notHere, plainPath, readFileInside } from '../../../../kernel/safe-path.ts';
import { compileGlob } from './glob.ts';
import { isInternal } from '../taint/internal-names.ts';
import type { Found, SearchRequest } from './search.ts';

const maxEntries = 50_000;
const maxFolderEntries = 20_000;
const maxFileBytes = 2 * 1024 * 1024;
const maxReadBytes = 256 * 1024 * 1024;
const maxLineCharacters = 300;
const maxAnswerCharacters = 40_000;
/** Full of third-party files; searched only when named. */
const skipped = new Set(['node_modules']);

/** Finds names, or lines of text files, below a folder of a workspace, in the order of their paths. Run it in a separate thread. */
export async function searchFiles({ root, path, glob, expression, limit }: SearchRequest): Promise<Found> {
  const fits = glob === undefined ? () => true : compileGlob(glob);
  const test = expression === undefined ? undefined : compile(expression);
  const start = path === '.' ? '.' : plainPath(path);
  if (isInternal(start)) throw notHere();
  const lines: string[] = [];
  let characters = 0;
  let found = 0;
  let files = 0;
  let bytes = 0;
  let entries = 0;
  const take = (line: string): boolean => {
    characters += line.length + 1;
    if (characters > maxAnswerCharacters) return false;
    lines.push(line);
    return true;
  };

  /** Why it stopped; undefined when it did not. */
  async function inFile(file: string, size: number): Promise<Found['stopped']> {
    if (test === undefined) {
      found += 1;
      return found > limit ? 'limit' : take(file) ? undefined : 'limit';
    }
    if (size > maxFileBytes) return undefined;
    bytes += size;
    if (bytes > maxReadBytes) return 'size';
    const content = await readFileInside(root, file, { maxBytes: maxFileBytes }).catch((error: unknown) => {
      // It was deleted, or grew, meanwhile.
      if (error instanceof AppError) return undefined;
      throw error;
    });
    if (content === undefined || content.includes(0)) return undefined;
    const text = content.toString().split(/\r?\n/);
    if (text.at(-1) === '') text.pop();
    const hits = text.flatMap((line, index) => (test(line) ? [index] : []));
    if (hits.length > 0) files += 1;
    const context = expression?.context ?? 0;
    const isHit = new Set(hits);
    let shownUpTo = -1;
    for (const hit of hits) {
      found += 1;
      if (found > limit) return 'limit';
      if (context > 0 && shownUpTo >= 0 && hit - context > shownUpTo + 1 && !take('--')) return 'limit';
      for (let index = Math.max(shownUpTo + 1, hit - context); index <= Math.min(text.length - 1, hit + context); index += 1) {
        const mark = isHit.has(index) ? ':' : '-';
        if (!take(`${file}${mark}${index + 1}${mark} ${shorten(text[index] ?? '')}`)) return 'limit';
        shownUpTo = index;
      }
    }
    return undefined;
  }

  async function walk(folder: string): Promise<Found['stopped']> {
    const listed = await listFolderInside(root, folder, maxFolderEntries).catch((error: unknown) => {
      // Folders below the start may disappear during the walk.
      if (folder !== start && error instanceof AppError) return { entries: [], more: false };
      throw error;
    });
    for (const entry of listed.entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const at = folder === '.' ? entry.name : `${folder}/${entry.name}`;
      entries += 1;
      if (entries > maxEntries) return 'files';
      if (isInternal(entry.name) || skipped.has(entry.name)) continue;
      const stopped = entry.kind === 'directory' ? await walk(at) : fits(below(at)) ? await inFile(at, entry.size) : undefined;
      if (stopped !== undefined) return stopped;
    }
    return listed.more ? 'files' : undefined;
  }

  /** Patterns match paths relative to the start of the search. */
  const below = (at: string) => (start === '.' ? at : at.slice(start.length + 1));

  let kind: Awaited<ReturnType<typeof entryInside>> = 'directory';
  if (start !== '.') kind = await entryInside(root, start);
  const stopped = kind === 'file' ? await inFile(start, 0) : await walk(start);
  return {
    lines,
    found: Math.min(found, limit),
    files: test === undefined ? Math.min(found, limit) : files,
    ...(stopped !== undefined && { stopped }),
  };
}

function compile({ source, ignoreCase, literal }: NonNullable<SearchRequest['expression']>): (line: string) => boolean {
  const flags = ignoreCase ? 'i' : '';
  const text = literal ? source.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&') : source;
  try {
    // Some expressions compile only with the flag `u`, others only without it.
    const expression = new RegExp(text, `${flags}u`);
    return (line) => expression.test(line);
  } catch {
    try {
      const expression = new RegExp(text, flags);
      return (line) => expression.test(line);
    } catch (error) {
      throw new AppError(
        'invalid_params',
        `pattern: ${error instanceof Error ? error.message : 'not a regular expression'}; set literal to search for the text as it is`,
      );
    }
  }
}

function shorten(line: string): string {
  return line.length <= maxLineCharacters ? line : `${line.slice(0, maxLineCharacters).toWellFormed()}…`;
}
