import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type CompiledQuery, sql } from 'kysely';
import { bind, type Binding, bindingOf } from '../binding.ts';
import type { FindOperation, Query, QueryTools, Tx } from '../operation.ts';
import { createQueryTools } from '../query-tools.ts';

interface Prepared extends Binding {
  readonly statement: StatementSync;
}

const queryTools = createQueryTools('sqlite');

type AnyQuery = Query<never, unknown>;

/** One connection as operations see it: prepares each query once and records whether anything was written. */
export interface Session {
  readonly db: DatabaseSync;
  readonly tx: Tx;
  /** Set by every statement that is not a plain SELECT; the reader resets it. */
  wrote: boolean;
}

export function createSession(db: DatabaseSync, findOperation: FindOperation): Session {
  const cache = new Map<AnyQuery, Prepared>();
  const runs = new Map<AnyQuery, Prepared>();

  function prepare(compiled: CompiledQuery): Prepared {
    return { ...bindingOf(compiled), statement: db.prepare(compiled.sql) };
  }

  function prepared(query: AnyQuery): Prepared {
    let found = cache.get(query);
    if (found === undefined) {
      found = prepare(query.build(queryTools as QueryTools<never>).compile());
      cache.set(query, found);
    }
    if (found.writes) session.wrote = true;
    return found;
  }

  /** A full-text table leaves internal row ids as the last inserted one, which no number can represent: every later `run` would throw. */
  function preparedRun(query: AnyQuery): Prepared {
    let found = runs.get(query);
    if (found === undefined) {
      found = prepare(query.build(queryTools as QueryTools<never>).compile());
      found.statement.setReadBigInts(true);
      runs.set(query, found);
    }
    if (found.writes) session.wrote = true;
    return found;
  }

  // SQLite answers synchronously; promises are what other engines need. A throw must become a rejection.
  const tx: Tx = {
    all<P, Row>(query: Query<P, Row>, params: P) {
      return settle(() => {
        const { statement, names, constants } = prepared(query);
        return statement.all(...bind(names, constants, params)) as Row[];
      });
    },
    get<P, Row>(query: Query<P, Row>, params: P) {
      return settle(() => {
        const { statement, names, constants } = prepared(query);
        return statement.get(...bind(names, constants, params)) as Row | undefined;
      });
    },
    run<P>(query: Query<P, unknown>, params: P) {
      return settle(() => {
        const { statement, names, constants } = preparedRun(query);
        return { changes: Number(statement.run(...bind(names, constants, params)).changes) };
      });
    },
    build<Row>(make: Parameters<Tx['build']>[0]) {
      return settle(() => {
        const { statement, constants, writes } = prepare(make(queryTools.db, sql, 'sqlite').compile());
        if (writes) session.wrote = true;
        return statement.all(...constants) as Row[];
      });
    },
    // As in a call from the main thread, the type is lost between threads.
    call: ({ operation, input }) => findOperation(operation).run(tx, input as never),
  };
  const session: Session = { db, tx, wrote: false };
  return session;
}

function settle<T>(run: () => T): Promise<T> {
  try {
    return Promise.resolve(run());
  } catch (error) {
    return Promise.reject(error);
  }
}
