import type { CompiledQuery, Expression, Kysely, RawBuilder, sql } from 'kysely';
import type { Tables } from './tables.ts';

/** Builds queries on the tables of all features. */
export type Database = Kysely<Tables>;

/** A query of Kysely, or `raw`; `execute` is never called and carries the type of the rows. */
export interface BuiltQuery<Row> {
  compile(): CompiledQuery;
  execute(): Promise<readonly Row[]>;
}

/**
 * A query with named parameters, written with Kysely, compiled once per engine and prepared once per connection.
 * `p('name')` stands for a parameter. Kysely itself is only loaded in the storage threads: `build` runs there.
 */
export interface Query<Params, Row> {
  readonly build: (tools: QueryTools<Params>) => BuiltQuery<Row>;
}

export interface QueryTools<Params> {
  readonly db: Database;
  readonly sql: typeof sql;
  readonly p: <Name extends keyof Params & string>(name: Name) => Expression<Stored<Params[Name]>>;
  /** Parameters by the names of their columns, for the values of a row. */
  readonly each: <Name extends keyof Params & string>(names: readonly Name[]) => { readonly [N in Name]: Expression<Stored<Params[N]>> };
}

/** The value that the database keeps for a parameter. */
type Stored<Value> = Value extends boolean ? 0 | 1 : Value extends undefined ? null : Value;

/** A statement that Kysely's builders cannot express, with the type of its rows, which nothing checks. */
export function raw<Row>(db: Database, statement: RawBuilder<Row>): BuiltQuery<Row> {
  return { compile: () => statement.compile(db), execute: () => Promise.reject(new TypeError('a query is run by its operation')) };
}

/** Values that a database accepts and returns. U+0000 in a text, which PostgreSQL refuses, is stored as U+FFFD. JSON columns are text; times are integer milliseconds; money is integers of 1e-9 dollar. */
export type SqlValue = string | number | bigint | null | Uint8Array;

/** A transaction (in a writer) or a snapshot (in a reader). Nothing but SQL is awaited inside. */
export interface Tx {
  all<P, Row>(query: Query<P, Row>, params: P): Promise<Row[]>;
  get<P, Row>(query: Query<P, Row>, params: P): Promise<Row | undefined>;
  run<P>(query: Query<P, unknown>, params: P): Promise<{ readonly changes: number }>;
  /** Runs a query whose shape depends on the input (filters): built for each call. */
  build<Row>(make: (db: Database, sqlTag: typeof sql) => BuiltQuery<Row>): Promise<Row[]>;
  /** Runs another operation as part of this one, so that both are stored or neither. */
  call(call: OperationCall): Promise<unknown>;
}

/**
 * A named unit of work on the database: whole, without closures of the main thread, because it runs in a storage
 * thread. `storage.ts` lists every operation, so that the threads know it by name.
 */
export interface Operation<Input, Output> {
  readonly name: string;
  readonly run: (tx: Tx, input: Input) => Promise<Output>;
}

export function operation<Input, Output>(name: string, run: (tx: Tx, input: Input) => Promise<Output>): Operation<Input, Output> {
  return { name, run };
}

/** An operation with its input, as plain data: how a caller adds its own rows to the transaction of another feature. */
export interface OperationCall {
  readonly operation: string;
  readonly input: unknown;
}

export function toCall<Input, Output>({ name }: Operation<Input, Output>, input: Input): OperationCall {
  return { operation: name, input };
}

/** The output of an `OperationCall`. */
export interface OperationResult {
  readonly operation: string;
  readonly output: unknown;
}

/** Returns the output of an operation that was called once; undefined when it was not called. */
export function outputOf<Input, Output>({ name }: Operation<Input, Output>, results: readonly OperationResult[]): Output | undefined {
  return results.find(({ operation: called }) => called === name)?.output as Output | undefined;
}

/** Finds an operation by its name. */
export type FindOperation = (name: string) => Operation<never, unknown>;

/** Declares a query; state `Params` and `Row`, the rest is inferred. */
export function query<Params, Row = unknown>(build: Query<Params, Row>['build']): Query<Params, Row> {
  return { build };
}

/** One step of the schema; forward-only, run once, in order of `id`, each in a separate transaction. */
export interface Migration {
  /** `NNN-name`; the number orders all features' migrations together. */
  readonly id: string;
  /** SQL statements, portable unless `sqlite` and `postgres` differ. */
  readonly up: readonly string[];
  /** The file it belongs to; `telemetry` holds what may be lost with the power (decisions §10). */
  readonly database?: 'main' | 'telemetry';
}
