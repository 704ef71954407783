import type { ResultRef } from '@gatehouse/contract';
import { headOf, tailOf } from '../../../../kernel/cut-text.ts';
import { parseJson } from '../../../../kernel/json.ts';

type Kind = Exclude<ResultRef['kind'], 'binary'>;

/** What kind of result a text is. */
export interface ResultFacts {
  readonly kind: Kind;
  readonly rows?: number;
  readonly schema?: readonly string[];
}

const maxNames = 256;
const maxNameCharacters = 256;
/** Beyond this length the beginning decides, and nothing is counted. */
const maxParsed = 4 * 1024 * 1024;

/** Detects json, jsonl, csv and html; anything else is text. */
export function detectResult(text: string): ResultFacts {
  const trimmed = text.trim();
  if (/^<(?:!doctype html|html)\b/i.test(trimmed)) return { kind: 'html' };
  if (trimmed.length > maxParsed) return { kind: 'text' };
  return asJson(trimmed) ?? asJsonLines(trimmed) ?? asCsv(trimmed) ?? { kind: 'text' };
}

function asJson(text: string): ResultFacts | undefined {
  if (!/^[[{]/.test(text)) return undefined;
  const value = parsed(text);
  if (Array.isArray(value)) return { kind: 'json', rows: value.length, ...schemaOf(value[0]) };
  return typeof value === 'object' && value !== null ? { kind: 'json', ...schemaOf(value) } : undefined;
}

function asJsonLines(text: string): ResultFacts | undefined {
  if (!text.startsWith('{') && !text.startsWith('[')) return undefined;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length < 2) return undefined;
  let first: unknown;
  for (const [index, line] of lines.entries()) {
    const value = parsed(line);
    if (typeof value !== 'object' || value === null) return undefined;
    if (index === 0) first = value;
  }
  return { kind: 'jsonl', rows: lines.length, ...schemaOf(first) };
}

/** Detects at least three lines with the same number of separators outside of quotes; the first line holds the names. */
function asCsv(text: string): ResultFacts | undefined {
  const lines = text.split(/\r?\n/).filter((line) => line !== '');
  const [head] = lines;
  if (head === undefined || lines.length < 3) return undefined;
  for (const separator of [',', ';', '\t']) {
    const names = cellsOf(head, separator);
    if (names.length < 2 || names.some((name) => name.trim() === '' || name.length > 100)) continue;
    if (!lines.every((line) => cellsOf(line, separator).length === names.length)) continue;
    return {
      kind: 'csv',
      rows: lines.length - 1,
      schema: names.slice(0, maxNames).map((name) => headOf(unquoted(name.trim()), maxNameCharacters)),
    };
  }
  return undefined;
}

const unquoted = (cell: string) => (/^".*"$/.test(cell) ? cell.slice(1, -1).replaceAll('""', '"') : cell);

function cellsOf(line: string, separator: string): string[] {
  const cells = [''];
  let isQuoted = false;
  for (const character of line) {
    if (character === '"') isQuoted = !isQuoted;
    if (character === separator && !isQuoted) cells.push('');
    else cells[cells.length - 1] += character;
  }
  return cells;
}

function schemaOf(value: unknown): { schema?: readonly string[] } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return {
    schema: Object.keys(value)
      .slice(0, maxNames)
      .map((name) => headOf(name, maxNameCharacters)),
  };
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

const gap = '\n[…]\n';

/** Keeps the first 60 % and the last 40 % of what fits into the length. */
export function keepEnds(text: string, length: number): string {
  if (text.length <= length) return text;
  const capacity = Math.max(0, length - gap.length);
  const head = Math.ceil(capacity * 0.6);
  return `${headOf(text, head)}${gap}${tailOf(text, capacity - head)}`;
}
