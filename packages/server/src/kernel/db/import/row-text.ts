import type { SQLOutputValue } from 'node:sqlite';

/** The types of all columns, as SQLite's schemas declare them. */
export const columnTypes = ['INTEGER', 'TEXT', 'REAL', 'BLOB'] as const;
export type ColumnType = (typeof columnTypes)[number];

const special = /[\b\t\n\v\f\r\\]/g;
const escapes: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '\\': '\\\\',
};

/** Counts the texts in which U+0000 was replaced. */
export interface Replacements {
  texts: number;
}

/**
 * Returns a row as a line of COPY, as PostgreSQL reads it and prints it again, so that the lines of both engines can be compared. It prints
 * fractions in other digits than JavaScript: `comparedColumn` and `asCompared` agree on their bits.
 */
export function toLine(row: readonly SQLOutputValue[], types: readonly ColumnType[], replaced: Replacements, asCompared = false): string {
  let line = '';
  for (let index = 0; index < types.length; index++) {
    if (index > 0) line += '\t';
    line += toField(row[index] ?? null, types[index], replaced, asCompared);
  }
  return `${line}\n`;
}

function toField(value: SQLOutputValue, type: ColumnType | undefined, replaced: Replacements, asCompared: boolean): string {
  if (value === null) return '\\N';
  if (typeof value === 'string') return toText(value, replaced);
  if (value instanceof Uint8Array) return `\\\\x${value.toHex()}`;
  if (type !== 'REAL') return String(value);
  return asCompared ? toBits(Number(value)) : String(value);
}

function toText(text: string, replaced: Replacements): string {
  let kept = text;
  if (text.includes('\0')) {
    replaced.texts++;
    kept = text.replaceAll('\0', '\ufffd');
  }
  return kept.replace(special, (found) => escapes[found] ?? found);
}

const bits = new DataView(new ArrayBuffer(8));

function toBits(value: number): string {
  bits.setFloat64(0, value);
  return bits.getBigUint64(0).toString(16).padStart(16, '0');
}

/** A column as PostgreSQL prints it for `toLine` with `asCompared`. */
export function comparedColumn(name: string, type: ColumnType): string {
  return type === 'REAL' ? `encode(float8send(${quoteName(name)}), 'hex')` : quoteName(name);
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
