import { type CompiledQuery, sql } from 'kysely';
import type { QueryResult } from 'pg';
import { bind, type Binding, bindingOf } from '../binding.ts';
import type { FindOperation, Query, QueryTools, Tx } from '../operation.ts';
import { createQueryTools } from '../query-tools.ts';
import type { Connection } from './connection.ts';

interface Prepared extends Binding {
  /** Names the statement on every connection. */
  readonly name: string;
  readonly text: string;
}

type AnyQuery = Query<never, unknown>;

const queryTools = createQueryTools('postgres');
/** Compiled once per thread; the driver prepares each on a connection when it is first used there. */
const cache = new Map<AnyQuery, Prepared>();

/** What the operations of a transaction see of a connection. That of searches is used again, because they keep what they know by its `tx`. */
export interface Session {
  readonly tx: Tx;
  /** The connection that statements go to. */
  connection: Connection;
  /** Statements of an operation that has ended already must not get into another transaction. */
  ended: boolean;
  /** Set by every statement that is not a plain SELECT. */
  wrote: boolean;
  /** The first error of a statement: the transaction is dead, whatever the operation makes of it. */
  failure: unknown;
  /** Number of statements so far. */
  statements: number;
  /** When set, only the first statement is run, because it is not inside a transaction. */
  alone: boolean;
}

/** Refuses a second statement of an operation that was taken for one with a single statement. */
export class SecondStatement extends Error {}

export function createSession(findOperation: FindOperation, connection: Connection): Session {
  async function run(prepared: Omit<Prepared, 'name'> & { readonly name?: string }, values: unknown[]): Promise<QueryResult> {
    if (session.ended) throw new Error('A statement came after its operation had ended');
    session.statements += 1;
    if (session.alone && session.statements > 1) throw new SecondStatement();
    if (prepared.writes) session.wrote = true;
    try {
      return await session.connection.execute(prepared.name, prepared.text, values);
    } catch (error) {
      session.failure ??= error;
      throw error;
    }
  }

  async function execute<P>(query: Query<P, unknown>, params: P): Promise<QueryResult> {
    const prepared = prepare(query);
    return run(prepared, bind(prepared.names, prepared.constants, params));
  }

  const tx: Tx = {
    async all<P, Row>(query: Query<P, Row>, params: P) {
      return (await execute(query, params)).rows as Row[];
    },
    async get<P, Row>(query: Query<P, Row>, params: P) {
      return (await execute(query, params)).rows[0] as Row | undefined;
    },
    async run<P>(query: Query<P, unknown>, params: P) {
      return { changes: (await execute(query, params)).rowCount ?? 0 };
    },
    async build<Row>(make: Parameters<Tx['build']>[0]) {
      const compiled = make(queryTools.db, sql, 'postgres').compile();
      const binding = bindingOf(compiled);
      return (await run({ ...binding, text: compiled.sql }, binding.constants.slice())).rows as Row[];
    },
    // As in a call from the main thread, the type is lost between threads.
    call: ({ operation, input }) => findOperation(operation).run(tx, input as never),
  };
  const session: Session = { tx, connection, ended: false, wrote: false, failure: undefined, statements: 0, alone: false };
  return session;
}

function prepare(query: AnyQuery): Prepared {
  let found = cache.get(query);
  if (found === undefined) {
    const compiled: CompiledQuery = query.build(queryTools as QueryTools<never>).compile();
    found = { ...bindingOf(compiled), name: `q${cache.size}`, text: compiled.sql };
    cache.set(query, found);
  }
  return found;
}
