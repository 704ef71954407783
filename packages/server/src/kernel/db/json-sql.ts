import type { Expression, RawBuilder, sql as sqlTag } from 'kysely';
import type { Dialect } from './operation.ts';

type Text = Expression<string> | Expression<string | null>;

/** Reads and changes JSON that a text column or a parameter holds. Columns are named as in the database. */
export interface JsonSql {
  /** A member of an object as text; null when it is absent or null. */
  readonly text: <T extends string | null = string | null>(column: string, key: string) => RawBuilder<T>;
  /** A member that is an integer. */
  readonly integer: (column: string, key: string) => RawBuilder<number | null>;
  /** The object with another member; `value` is a text, or true. */
  readonly set: (column: string, key: string, value: Text | true) => RawBuilder<string | null>;
  /** The elements of an array of texts: a query with the one column `value`. */
  readonly texts: (array: Text) => RawBuilder<string>;
  readonly integers: (array: Text) => RawBuilder<number>;
}

export function jsonSql(sql: typeof sqlTag, dialect: Dialect): JsonSql {
  return dialect === 'sqlite' ? sqliteJson(sql) : postgresJson(sql);
}

function sqliteJson(sql: typeof sqlTag): JsonSql {
  const member = (column: string, key: string) => sql<never>`json_extract(${sql.raw(column)}, ${sql.lit(`$.${key}`)})`;
  const elements = (array: Text) => sql<never>`(select value from json_each(${array}))`;
  return {
    text: member,
    integer: member,
    set: (column, key, value) => sql`json_set(${sql.raw(column)}, ${sql.lit(`$.${key}`)}, ${value === true ? sql`json('true')` : value})`,
    texts: elements,
    integers: elements,
  };
}

function postgresJson(sql: typeof sqlTag): JsonSql {
  const member = (column: string, key: string) => sql<never>`(${sql.raw(column)}::json ->> ${sql.lit(key)})`;
  return {
    text: member,
    integer: (column, key) => sql`${member(column, key)}::bigint`,
    set: (column, key, value) =>
      sql`jsonb_set(${sql.raw(column)}::jsonb, ${sql.lit(`{${key}}`)}, ${value === true ? sql`'true'` : sql`to_jsonb(${value}::text)`})::text`,
    texts: (array) => sql`(select value from json_array_elements_text(${array}::json) as value)`,
    integers: (array) => sql`(select value::bigint as value from json_array_elements_text(${array}::json) as value)`,
  };
}
