import { createHash } from 'node:crypto';
import type { Client } from 'pg';
import type { SQLOutputValue } from 'node:sqlite';
import { AppError } from '../../app-error.ts';
import { copyIn, copyOut } from './copy-stream.ts';
import { comparedColumn, quoteName, type Replacements, toLine } from './row-text.ts';
import type { SourceTable } from './source.ts';
import { type CopiedTable, noteCopied } from './target.ts';

/** Called for each row or so. */
export type OnRows = (rows: number) => void;

/** Copies a table in one transaction, so that a kill leaves all of it or nothing. */
export async function copyTable(client: Client, table: SourceTable, onRows: OnRows): Promise<CopiedTable> {
  const replaced: Replacements = { texts: 0 };
  let rows = 0;
  const types = table.columns.map(({ type }) => type);
  function* lines(): Generator<string> {
    for (const row of table.readAll()) {
      yield toLine(row, types, replaced);
      onRows(++rows);
    }
  }
  const names = table.columns.map(({ name }) => quoteName(name)).join(', ');
  await client.query('BEGIN');
  try {
    // What migrations inserted, and what the triggers of other tables did.
    await client.query(`DELETE FROM ${quoteName(table.name)}`);
    await copyIn(client, `COPY ${quoteName(table.name)} (${names}) FROM STDIN`, lines());
    const copied = { rows, replaced: replaced.texts };
    await noteCopied(client, table.name, copied);
    await client.query('COMMIT');
    return copied;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

export interface TableDigests {
  readonly rows: number;
  /** SHA-256 over all rows in the order of the primary key, as COPY prints them. */
  readonly digest: string;
}

/** The copy is not what the home has. */
export class DifferentCopy extends AppError {
  constructor(message: string) {
    super('internal', message);
  }
}

/**
 * Reads a table in both engines in the order of its primary key, side by side, and compares each row, their number and the sums of money.
 * @throws DifferentCopy naming the first row that differs.
 */
export async function compareTable(client: Client, table: SourceTable, onRows: OnRows): Promise<TableDigests> {
  const digests = { source: createHash('sha256'), copy: createHash('sha256') };
  const source = table.readByKey();
  const types = table.columns.map(({ type }) => type);
  const nextLine = () => {
    const { value, done } = source.next();
    if (done === true) return undefined;
    return { row: value, line: Buffer.from(toLine(value, types, { texts: 0 }, true)) };
  };
  let rows = 0;
  const columns = table.columns.map(({ name, type }) => comparedColumn(name, type)).join(', ');
  const order = table.key.map(({ name }) => quoteName(name)).join(', ');
  await copyOut(client, `COPY (SELECT ${columns} FROM ${quoteName(table.name)} ORDER BY ${order}) TO STDOUT`, (line) => {
    const expected = nextLine();
    if (expected === undefined)
      throw new DifferentCopy(`Table "${table.name}": PostgreSQL has a row that the home has not, after ${rows} equal ones`);
    if (!expected.line.equals(line))
      throw new DifferentCopy(`Table "${table.name}", key ${keyOf(table, expected.row)}: PostgreSQL has another row there`);
    digests.source.update(expected.line);
    digests.copy.update(line);
    onRows(++rows);
  });
  const missing = nextLine();
  if (missing !== undefined) throw new DifferentCopy(`Table "${table.name}", key ${keyOf(table, missing.row)}: PostgreSQL has no row there`);
  const [digest, copyDigest] = [digests.source.digest('hex'), digests.copy.digest('hex')];
  if (digest !== copyDigest) throw new DifferentCopy(`Table "${table.name}": the digests differ`);
  await compareSums(client, table);
  return { rows, digest };
}

/** Counts and adds with the means of the engines, which do not depend on what is compared above. */
async function compareSums(client: Client, { name, rows, sums }: SourceTable): Promise<void> {
  const terms = Object.keys(sums).map((column) => `, coalesce(sum(${quoteName(column)}), 0)::text AS ${quoteName(column)}`);
  const { rows: found } = await client.query<Record<string, string>>(`SELECT count(*)::text AS "count"${terms.join('')} FROM ${quoteName(name)}`);
  const { count, ...copied } = found[0] ?? {};
  if (Number(count) !== rows) throw new DifferentCopy(`Table "${name}": PostgreSQL counts ${count} rows, the home has ${rows}`);
  for (const [column, sum] of Object.entries(sums)) {
    if (copied[column] !== sum)
      throw new DifferentCopy(`Table "${name}": the sum of "${column}" is ${copied[column]} in PostgreSQL and ${sum} in the home`);
  }
}

function keyOf({ columns, key }: SourceTable, row: readonly SQLOutputValue[]): string {
  return key
    .map(({ name }) => {
      const value = row[columns.findIndex((column) => column.name === name)] ?? null;
      return value instanceof Uint8Array ? value.toHex() : String(value);
    })
    .join(', ');
}
