import type { CompiledQuery, Expression, Kysely, RawBuilder, sql } from 'kysely';
import type { JsonSql } from './json-sql.ts';
import type { Tables } from './tables.ts';

/** Builds queries on the tables of all features. */
export type Database = Kysely<Tables>;

/** A query of Kysely, or `raw`; `execute` is never called and carries the type of the rows. */
export interface BuiltQuery<Row> {
  compile(): CompiledQuery;
  execute(): Promise<readonly Row[]>;
}

/** The engine that a query is compiled for. */
export type Dialect = 'sqlite' | 'postgres';

/** Type that PostgreSQL cannot infer for a parameter, as in `p('x') is null`; SQLite ignores it. */
export type ParameterType = 'text' | 'integer' | 'real' | 'bytes';

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
  /** Needed by the few texts in which the engines differ. */
  readonly dialect: Dialect;
  readonly json: JsonSql;
  readonly p: <Name extends keyof Params & string>(name: Name, type?: ParameterType) => Expression<Stored<Params[Name]>>;
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
  build<Row>(make: (db: Database, sqlTag: typeof sql, dialect: Dialect) => BuiltQuery<Row>): Promise<Row[]>;
  /** Runs another operation as part of this one, so that both are stored or neither. */
  call(call: OperationCall): Promise<unknown>;
}

/**
 * A named unit of work on the database: whole, without closures of the main thread, because it runs in a storage
 * thread. `storage.ts` lists every operation, so that the threads know it by name.
 */
export interface Operation<Input, Output> extends OperationTraits<Input, Output> {
  readonly name: string;
  readonly run: (tx: Tx, input: Input) => Promise<Output>;
}

/** How an engine with several writing connections may run an operation. SQLite has one and ignores them. */
export interface OperationTraits<Input, Output = unknown> {
  /**
   * SERIALIZABLE with retries when absent. READ COMMITTED only for an operation whose guards are row locks, with a test that runs
   * it in two processes against the same rows.
   */
  readonly isolation?: 'read committed';
  /** Writes with different keys may be applied in any order. A write without a key keeps its order with every other. */
  readonly orderKey?: (input: Input) => string | undefined;
  /** Runs several inputs at once on PostgreSQL, where each statement costs a round trip. */
  readonly bulk?: BulkForm<NoInfer<Input>, NoInfer<Output>>;
}

/** Statements that do for several inputs what `run` does for them one after another. When one fails, all of them run alone. */
export interface BulkForm<Input, Output> {
  /** Whether an input may be among them. */
  readonly accepts: (input: Input) => boolean;
  /** Returns one output for each input, in order. */
  readonly run: (tx: Tx, inputs: readonly Input[]) => Promise<readonly Output[]>;
}

export function operation<Input, Output>(
  name: string,
  run: (tx: Tx, input: Input) => Promise<Output>,
  traits: OperationTraits<Input, Output> = {},
): Operation<Input, Output> {
  return { ...traits, name, run };
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
  /** SQL statements as SQLite runs them. PostgreSQL runs the same with its types (`postgres/schema.ts`), unless it has a separate list. */
  readonly up: readonly string[];
  /** Statements for PostgreSQL where the types alone do not translate `up`. */
  readonly postgres?: readonly string[];
  /** Number of the oldest schema whose program may use a database that has this step; its own number when absent: none. PostgreSQL only. */
  readonly compatibleFrom?: number;
  /** The file it belongs to; `telemetry` holds what may be lost with the power (decisions §10). */
  readonly database?: 'main' | 'telemetry';
}
