import { AppError } from '../../../../kernel/app-error.ts';

/** One change of an update: the lines to find, context included, and their replacement. */
export interface Hunk {
  /** Lines of the file that precede it, as named by `@@ text`. */
  readonly below: readonly string[];
  readonly oldLines: readonly string[];
  readonly newLines: readonly string[];
  readonly atEnd: boolean;
}

export type PatchStep =
  | { readonly kind: 'add'; readonly path: string; readonly content: string }
  | { readonly kind: 'delete'; readonly path: string }
  | { readonly kind: 'update'; readonly path: string; readonly moveTo: string | undefined; readonly hunks: readonly Hunk[] };

const maxSteps = 100;
const begin = '*** Begin Patch';
const end = '*** End Patch';
const moveMark = '*** Move to:';
/** Characters that one patch may be compared with: a file of equal lines would otherwise block the event loop. */
const maxCompared = 8_000_000;
/** Cost of comparing two lines in addition to their characters. */
const perComparison = 16;

function wrong(line: number, message: string): AppError {
  return new AppError('invalid_params', `patch, line ${line}: ${message}`);
}

/** Reads the `*** Begin Patch` format; fails with `invalid_params` that names the line. */
export function parsePatch(patch: string): readonly PatchStep[] {
  const lines = patch.replaceAll('\r\n', '\n').trim().split('\n');
  if (lines[0]?.trim() !== begin) throw wrong(1, `expected "${begin}"`);
  if (lines.at(-1)?.trim() !== end) throw wrong(lines.length, `expected "${end}" at the end`);
  const last = lines.length - 1;
  const steps: PatchStep[] = [];
  let at = 1;
  const isHeader = (line: string) => /^\*\*\* (?:Add|Update|Delete) File:/.test(line);
  while (at < last) {
    const line = lines[at] ?? '';
    if (line.trim() === '') {
      at += 1;
      continue;
    }
    const verb = /^\*\*\* (Add|Update|Delete) File:/.exec(line)?.[1];
    const name = pathAfter(line);
    if (verb === undefined || name === '')
      throw wrong(at + 1, 'expected "*** Add File: <path>", "*** Update File: <path>" or "*** Delete File: <path>"');
    at += 1;
    const start = at;
    while (at < last && !isHeader(lines[at] ?? '')) at += 1;
    const body = lines.slice(start, at);
    if (verb === 'Add') steps.push({ kind: 'add', path: name, content: addedContent(body, start) });
    else if (verb === 'Delete') {
      if (body.some((one) => one.trim() !== '')) throw wrong(start + 1, 'nothing may follow "*** Delete File"');
      steps.push({ kind: 'delete', path: name });
    } else steps.push(updateOf(name, body, start));
  }
  if (steps.length === 0) throw wrong(1, 'the patch changes nothing');
  if (steps.length > maxSteps) throw new AppError('invalid_params', `patch: at most ${maxSteps} files are taken at once`);
  return steps;
}

/** Returns the path unnormalized: one that contains an invisible character is a different path. */
function pathAfter(line: string): string {
  return line.slice(line.indexOf(':') + 1).replace(/^ /, '');
}

function addedContent(body: readonly string[], start: number): string {
  const lines = body.at(-1) === '' ? body.slice(0, -1) : body;
  return lines
    .map((line, index) => {
      if (!line.startsWith('+')) throw wrong(start + index + 1, 'each line of a new file begins with "+"');
      return `${line.slice(1)}\n`;
    })
    .join('');
}

function updateOf(path: string, body: readonly string[], start: number): PatchStep {
  const moveTo = body[0]?.startsWith(moveMark) === true ? pathAfter(body[0]) : undefined;
  const from = moveTo === undefined ? 0 : 1;
  const hunks: Hunk[] = [];
  let below: string[] = [];
  let oldLines: string[] = [];
  let newLines: string[] = [];
  let atEnd = false;
  const finish = () => {
    if (oldLines.length > 0 || newLines.length > 0) hunks.push({ below, oldLines, newLines, atEnd });
    [below, oldLines, newLines, atEnd] = [[], [], [], false];
  };
  for (const [index, line] of body.entries()) {
    if (index < from) continue;
    const isLast = index === body.length - 1;
    if (line.startsWith('@@')) {
      if (oldLines.length > 0 || newLines.length > 0) finish();
      // The ranges of "@@ -1,2 +3,4 @@" in other formats cannot be trusted.
      const context = line.slice(2).trim();
      if (context !== '' && !/^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@/.test(context)) below.push(context);
    } else if (line.trim() === '*** End of File') atEnd = true;
    else if (line.startsWith('+')) newLines.push(line.slice(1));
    else if (line.startsWith('-')) oldLines.push(line.slice(1));
    else if (line.startsWith(' ') || (line === '' && !isLast)) {
      // Models leave out the space of an empty line of context.
      oldLines.push(line.slice(1));
      newLines.push(line.slice(1));
    } else if (line !== '') throw wrong(start + index + 1, 'each line of an update begins with " ", "-", "+" or "@@"');
  }
  finish();
  if (hunks.length === 0 && moveTo === undefined) throw wrong(start, `nothing is changed in ${path}`);
  return { kind: 'update', path, moveTo, hunks };
}

/** Returns the text with all hunks applied, each below the one before; fails with `invalid_params` naming the one that does not fit. */
export function applyHunks(path: string, text: string, hunks: readonly Hunk[]): string {
  const crlf = /\r\n/.test(text) && !/(?:^|[^\r])\n/.test(text);
  const source = crlf ? text.replaceAll('\r\n', '\n') : text;
  const endsWithLine = source === '' || source.endsWith('\n');
  const lines = source.split('\n');
  if (endsWithLine) lines.pop();
  const file = openLines(path, lines);
  const result: string[] = [];
  let at = 0;
  for (const [index, hunk] of hunks.entries()) {
    const place = placeOf(file, hunk, at);
    if (typeof place === 'string') throw new AppError('invalid_params', `${path}: change ${index + 1}: ${place}`);
    for (const line of lines.slice(at, place)) result.push(line);
    for (const line of hunk.newLines) result.push(line);
    at = place + hunk.oldLines.length;
  }
  for (const line of lines.slice(at)) result.push(line);
  const joined = result.length === 0 ? '' : `${result.join('\n')}${endsWithLine ? '\n' : ''}`;
  return crlf ? joined.replaceAll('\n', '\r\n') : joined;
}

type Form = (line: string) => string;
const trimmed: Form = (line) => line.trim();
/** Matches exactly, or else ignoring white space at line ends. */
const forms: readonly Form[] = [(line) => line, (line) => line.trimEnd()];

/** Lines of a file, each normalized once, with a budget for comparisons. */
interface Lines {
  readonly count: number;
  in(form: Form): readonly string[];
  /** Fails with `invalid_params` when the budget is spent. */
  spend(cost: number): void;
}

function openLines(path: string, lines: readonly string[]): Lines {
  const known = new Map<Form, readonly string[]>();
  let compared = 0;
  return {
    count: lines.length,
    in(form) {
      let found = known.get(form);
      if (found === undefined) known.set(form, (found = lines.map(form)));
      return found;
    },
    spend(cost) {
      compared += cost;
      if (compared > maxCompared)
        throw new AppError('invalid_params', `${path}: too much to compare; write the file whole, or patch it in smaller parts`);
    },
  };
}

/** Returns the index of the first line that a change replaces, or what is wrong with it. */
function placeOf(file: Lines, { below, oldLines, atEnd }: Hunk, from: number): number | string {
  let start = from;
  for (const context of below) {
    const found = file.in(trimmed).indexOf(context, start);
    file.spend(((found < 0 ? file.count : found + 1) - start) * perComparison);
    if (found < 0) return `its "@@" line is not in the file below line ${start}`;
    start = found + 1;
  }
  if (oldLines.length === 0) return atEnd || below.length === 0 ? file.count : start;
  const lastPlace = file.count - oldLines.length;
  for (const form of forms) {
    const there = file.in(form);
    const wanted = oldLines.map(form);
    const fits = (place: number) =>
      wanted.every((line, index) => {
        const other = there[place + index];
        file.spend(perComparison + (other?.length === line.length ? line.length : 0));
        return other === line;
      });
    if (atEnd && lastPlace >= start && fits(lastPlace)) return lastPlace;
    for (let place = start; place <= lastPlace; place += 1) if (fits(place)) return place;
  }
  const first = file.in(trimmed).indexOf(oldLines[0]?.trim() ?? '', from);
  return first < 0
    ? `its first line is not in the file${from > 0 ? ` below line ${from}` : ''}; read the file and copy the lines exactly`
    : `its first line is at line ${first + 1}, but the lines that follow differ; read the file and copy them exactly`;
}
