import { AppError } from '../../../../kernel/app-error.ts';
import { maxWriteBytes, withLineEndsOf } from './text-file.ts';

export interface Replacement {
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll: boolean;
}

const maxNamedLines = 5;
/** Matches and lines that a hint may inspect. */
const maxLookedAt = 200;

/** Replaces exact text, once unless `replaceAll`; fails with `invalid_params` and a message that helps to correct the call. */
export function replaceExact(file: string, { oldText, newText, replaceAll }: Replacement): { readonly text: string; readonly count: number } {
  if (oldText === newText) throw new AppError('invalid_params', 'oldText and newText are the same: nothing would change');
  const wanted = withLineEndsOf(file, oldText);
  const found = findMatches(file, wanted);
  if (found.length === 0) throw new AppError('invalid_params', `oldText is not in the file${hint(file, oldText)}`);
  if (found.length > 1 && !replaceAll)
    throw new AppError(
      'invalid_params',
      `oldText is in the file ${found.length} times (${linesOf(file, found)}): add lines around it until it is unique, or set replaceAll`,
    );
  const replacing = withLineEndsOf(file, newText);
  // Checked before building it: a short file with many matches can exceed the longest string.
  if (file.length + found.length * (replacing.length - wanted.length) > maxWriteBytes)
    throw new AppError('payload_too_large', `The content is larger than ${maxWriteBytes} bytes`);
  // Not String.replace, which would interpret "$&" in the new text.
  const parts: string[] = [];
  let from = 0;
  for (const match of found) {
    parts.push(file.slice(from, match));
    from = match + wanted.length;
  }
  parts.push(file.slice(from));
  return { text: parts.join(replacing), count: found.length };
}

/** Finds matches in linear time (Knuth, Morris, Pratt): the engine's search is not linear, and both texts may come from an attacker. */
function findMatches(file: string, wanted: string): number[] {
  const fallback = new Int32Array(wanted.length);
  for (let at = 1, matched = 0; at < wanted.length; at += 1) {
    while (matched > 0 && wanted.charCodeAt(at) !== wanted.charCodeAt(matched)) matched = fallback[matched - 1] ?? 0;
    if (wanted.charCodeAt(at) === wanted.charCodeAt(matched)) matched += 1;
    fallback[at] = matched;
  }
  const matches: number[] = [];
  for (let at = 0, matched = 0; at < file.length; at += 1) {
    while (matched > 0 && file.charCodeAt(at) !== wanted.charCodeAt(matched)) matched = fallback[matched - 1] ?? 0;
    if (file.charCodeAt(at) === wanted.charCodeAt(matched)) matched += 1;
    if (matched < wanted.length) continue;
    matches.push(at + 1 - matched);
    // Matches do not overlap.
    matched = 0;
  }
  return matches;
}

function linesOf(file: string, matches: readonly number[]): string {
  const named: number[] = [];
  let line = 1;
  let from = 0;
  for (const match of matches.slice(0, maxNamedLines)) {
    for (let at = file.indexOf('\n', from); at >= 0 && at < match; at = file.indexOf('\n', at + 1)) {
      line += 1;
      from = at + 1;
    }
    named.push(line);
  }
  return `${named.length === 1 ? 'line' : 'lines'} ${named.join(', ')}${matches.length > named.length ? ' …' : ''}`;
}

/** Locates the text ignoring white space, or only its first line; quotes nothing from the file, which is text from outside. */
function hint(file: string, oldText: string): string {
  const lines = file.split('\n').map((line) => line.trim());
  const wanted = oldText.split('\n').map((line) => line.trim());
  while (wanted[0] === '') wanted.shift();
  while (wanted.at(-1) === '') wanted.pop();
  const first = wanted[0];
  if (first === undefined) return ': it is nothing but white space';
  const starts = lines.flatMap((line, index) => (line === first ? [index] : [])).slice(0, maxLookedAt);
  const alike = wanted.length > maxLookedAt ? undefined : starts.find((start) => wanted.every((line, index) => lines[start + index] === line));
  if (alike !== undefined) return `: line ${alike + 1} has it with other white space; read the file and copy it exactly`;
  if (starts.length > 0) return `: its first line is at line ${(starts[0] ?? 0) + 1}, but what follows differs; read the file and copy it exactly`;
  return ': read the file and copy the text exactly, without line numbers';
}
