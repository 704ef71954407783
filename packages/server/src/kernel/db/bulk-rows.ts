import type { Expression, RawBuilder } from 'kysely';
import type { QueryTools } from './operation.ts';
import { toSqlValue } from './sql-value.ts';

/** Names the columns of rows that travel as one parameter, with their types on PostgreSQL. */
export type BulkColumns<Row> = { readonly [Name in keyof Row & string]: 'text' | 'bigint' };

/** Returns `SELECT` of the rows in a parameter, in their order, for `INSERT` on PostgreSQL. */
export function selectBulk<Row>({ sql }: Pick<QueryTools<object>, 'sql'>, columns: BulkColumns<Row>, rows: Expression<unknown>): RawBuilder<never> {
  const entries = Object.entries<string>(columns);
  // The names are those of the parameter, which is written in camelCase.
  const names = sql.raw(entries.map(([name]) => `bulk."${name}"`).join(', '));
  const types = sql.raw(entries.map(([name, type]) => `"${name}" ${type}`).join(', '));
  return sql<never>`SELECT ${names} FROM json_to_recordset(${rows}::json) AS bulk(${types})`;
}

/** Returns rows as the text of that parameter; values are converted and checked like parameters. */
export function toBulkRows<Row>(columns: BulkColumns<Row>, rows: readonly Row[]): string {
  const names = Object.keys(columns) as (keyof Row & string)[];
  return JSON.stringify(
    rows.map((row) => {
      const values: Record<string, unknown> = {};
      for (const name of names) values[name] = toSqlValue(row[name], name);
      return values;
    }),
  );
}
