import { parse, stringify } from 'smol-toml';
import type { Values } from './client.ts';
import { isValues, mergeValues, own, ShapeError } from './merge-values.ts';

const header = /^\s*\[+\s*([^\]]+?)\s*\]+/;

/**
 * Edits TOML line by line, because a parser would drop comments. The result is parsed again and must equal
 * the merged values, so that an unsupported form is refused instead of damaged.
 */
export function mergeToml(text: string, wanted: Values): string {
  const expected = mergeValues(read(text), wanted);
  const scalars = Object.entries(wanted).filter(([, value]) => !isValues(value));
  const kept = withoutOwnTables(text.split('\n'));
  const start = kept.findIndex((line) => header.test(line));
  const head = start === -1 ? kept : kept.slice(0, start);
  const rest = start === -1 ? [] : kept.slice(start);
  const keys = new Set(scalars.map(([key]) => key));
  const lines = [
    ...scalars.map(([key, value]) => stringify({ [key]: value }).trimEnd()),
    ...head.filter((line) => !keys.has(/^\s*([\w-]+)\s*=/.exec(line)?.[1] ?? '')),
    ...rest,
  ];
  const tables = Object.fromEntries(Object.entries(mergeValues({}, wanted)).filter(([, value]) => isValues(value)));
  const result = `${lines.join('\n').trimEnd()}\n\n${stringify(tables)}`;
  if (!isSame(result, expected)) throw new ShapeError('it is laid out in a way that cannot be edited safely');
  return result;
}

function withoutOwnTables(lines: readonly string[]): string[] {
  let isOwnTable = false;
  return lines.filter((line) => {
    const name = header.exec(line)?.[1];
    if (name !== undefined) isOwnTable = name.split('.')[1]?.trim() === own;
    return !isOwnTable;
  });
}

function read(text: string): Values {
  try {
    return parse(text);
  } catch (error) {
    throw new ShapeError(`it is not valid TOML (${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)})`);
  }
}

function isSame(text: string, expected: Values): boolean {
  try {
    return JSON.stringify(parse(text), sortKeys) === JSON.stringify(expected, sortKeys);
  } catch {
    return false;
  }
}

function sortKeys(_key: string, value: unknown): unknown {
  return isValues(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value;
}
