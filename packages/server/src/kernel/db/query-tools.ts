import {
  type AliasNode,
  type BinaryOperationNode,
  CastNode,
  ColumnNode,
  DummyDriver,
  type Expression,
  IdentifierNode,
  Kysely,
  type KyselyPlugin,
  type LimitNode,
  type OperationNode,
  OperationNodeTransformer,
  OperatorNode,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  PrimitiveValueListNode,
  RawNode,
  ReferenceNode,
  type SelectionNode,
  type SelectModifierNode,
  sql,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  ValueListNode,
  ValueNode,
} from 'kysely';
import { jsonSql } from './json-sql.ts';
import type { Database, Dialect, ParameterType, QueryTools } from './operation.ts';
import type { Tables } from './tables.ts';

/** Marks the position in a compiled query's parameter list for the value that each execution supplies. */
export class Placeholder<T = unknown> implements Expression<T> {
  readonly name: string;
  readonly #cast: string | undefined;

  constructor(name: string, cast?: string) {
    this.name = name;
    this.#cast = cast;
  }

  get expressionType(): T | undefined {
    return undefined;
  }

  toOperationNode(): OperationNode {
    const value = ValueNode.create(this);
    return this.#cast === undefined ? value : CastNode.create(value, RawNode.createWithSql(this.#cast));
  }
}

const postgresTypes: Readonly<Record<ParameterType, string>> = { text: 'text', integer: 'bigint', real: 'double precision', bytes: 'bytea' };

class SqliteCompiler extends SqliteQueryCompiler {
  /**
   * Inlines a known limit into the text of its query: the planner uses its value, so as a parameter it would make
   * SQLite plan the statement again for each execution, at ten times the cost of a small query.
   */
  protected override visitLimit(node: LimitNode): void {
    const { limit } = node;
    if (ValueNode.is(limit) && Number.isSafeInteger(limit.value)) this.append(`limit ${limit.value}`);
    else super.visitLimit(node);
  }

  /** Row locks (`for update`, `for share`, `skip locked`) need no counterpart: one connection writes. */
  protected override visitSelectModifier(node: SelectModifierNode): void {
    if (node.modifier === 'Distinct') super.visitSelectModifier(node);
  }
}

/** Accepts a list without values as SQLite does: nothing is in it. */
class PostgresCompiler extends PostgresQueryCompiler {
  protected override visitBinaryOperation(node: BinaryOperationNode): void {
    const { operator, rightOperand: list } = node;
    const isEmpty = (PrimitiveValueListNode.is(list) || ValueListNode.is(list)) && list.values.length === 0;
    if (isEmpty && OperatorNode.is(operator)) this.append(operator.operator === 'in' ? 'false' : 'true');
    else super.visitBinaryOperation(node);
  }
}

/**
 * Tables and columns are camelCase in queries and snake_case in the database. Names are converted when a query is compiled,
 * also those of its results, so that rows need no conversion.
 */
class SnakeCase extends OperationNodeTransformer {
  /** Result names that the query itself defines; they stay as they are. */
  #ownNames: ReadonlySet<string> = new Set();

  ofQuery(node: OperationNode): OperationNode {
    const { selections = [] } = node as { readonly selections?: readonly SelectionNode[] };
    this.#ownNames = new Set(
      selections.flatMap(({ selection }) => (isAlias(selection) && IdentifierNode.is(selection.alias) ? selection.alias.name : [])),
    );
    // A query that was refused has left its nodes.
    this.nodeStack.length = 0;
    return this.transformNode(node);
  }

  protected override transformIdentifier(node: IdentifierNode): IdentifierNode {
    return IdentifierNode.create(toSnakeCase(node.name));
  }

  protected override transformSelection(node: SelectionNode): SelectionNode {
    const changed = super.transformSelection(node);
    if (!this.#isResult()) return changed;
    const { selection } = node;
    if (selection.kind === 'SelectAllNode') throw new TypeError('selectAll is not supported: name the columns');
    if (isAlias(selection)) return { ...changed, selection: { ...(changed.selection as AliasNode), alias: selection.alias } };
    const name = columnOf(selection);
    if (name === undefined || toSnakeCase(name) === name) return changed;
    return { ...changed, selection: { kind: 'AliasNode', node: changed.selection, alias: IdentifierNode.create(name) } };
  }

  protected override transformColumn(node: ColumnNode): ColumnNode {
    // A result that `order by` names.
    const isOwn = this.nodeStack[1]?.kind === 'OrderByNode' && this.#ownNames.has(node.column.name);
    return isOwn ? node : super.transformColumn(node);
  }

  /** Whether the selection at the top of the stack is one of the whole query, not of a query inside it. */
  #isResult(): boolean {
    return this.nodeStack.length === 2 || (this.nodeStack.length === 3 && this.nodeStack[1]?.kind === 'ReturningNode');
  }
}

const isAlias = (node: OperationNode): node is AliasNode => node.kind === 'AliasNode';

function columnOf(node: OperationNode): string | undefined {
  if (ReferenceNode.is(node)) return columnOf(node.column);
  return ColumnNode.is(node) ? node.column.name : undefined;
}

const snakeCase = new Map<string, string>();

function toSnakeCase(name: string): string {
  let found = snakeCase.get(name);
  if (found === undefined) {
    found = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    snakeCase.set(name, found);
  }
  return found;
}

const names = new SnakeCase();
const plugin: KyselyPlugin = {
  transformQuery: ({ node }) => names.ofQuery(node) as ReturnType<KyselyPlugin['transformQuery']>,
  transformResult: ({ result }) => Promise.resolve(result),
};

const dialects = {
  sqlite: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db: Kysely<never>) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteCompiler(),
  },
  postgres: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db: Kysely<never>) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresCompiler(),
  },
};

/** Returns what builds and compiles the queries of one engine; it never runs them. */
export function createQueryTools(dialect: Dialect): QueryTools<Record<string, unknown>> {
  const castOf = (type: ParameterType | undefined) => (dialect === 'postgres' && type !== undefined ? postgresTypes[type] : undefined);
  return {
    db: new Kysely<Tables>({ dialect: dialects[dialect], plugins: [plugin] }) satisfies Database,
    sql,
    dialect,
    json: jsonSql(sql, dialect),
    p: (name, type) => new Placeholder(name, castOf(type)),
    each: <Name extends string>(names: readonly Name[]) =>
      Object.fromEntries(names.map((name) => [name, new Placeholder(name)])) as Record<Name, Placeholder>,
  };
}
