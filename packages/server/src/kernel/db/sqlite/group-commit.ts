import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { FindOperation, Operation, Tx } from '../operation.ts';
import { Failure } from './answers.ts';
import { createSession, type Session } from './statements.ts';

/** An operation with its input, waiting for execution. */
export interface Unit {
  readonly operation: Operation<never, unknown>;
  readonly input: unknown;
}

/** Outcome of a batch. Callers may be notified: the commit is done. */
export interface Committed {
  /** One result per unit, in order: a `Failure` for each that threw; for all when the commit failed. */
  readonly results: readonly unknown[];
  /** True when something was stored, which proves that the disk takes writes. */
  readonly stored: boolean;
}

/** Runs units of work on one writing connection: many units share one commit, and with it one sync of the disk. */
export interface GroupCommit {
  commit(units: readonly Unit[]): Promise<Committed>;
}

export function createGroupCommit(db: DatabaseSync, findOperation: FindOperation): GroupCommit {
  const session = createSession(db, findOperation);
  const statement = prepareAll(db, {
    begin: 'BEGIN IMMEDIATE',
    commit: 'COMMIT',
    rollback: 'ROLLBACK',
    savepoint: 'SAVEPOINT unit',
    release: 'RELEASE unit',
    rollbackUnit: 'ROLLBACK TO unit',
  });

  /** Returns undefined when a unit failed after it had written and there is no savepoint to roll back to. */
  async function attempt(units: readonly Unit[], isolated: boolean): Promise<Committed | undefined> {
    const results: unknown[] = [];
    let stored = false;
    statement.begin.run();
    for (const unit of units) {
      session.wrote = false;
      if (isolated) statement.savepoint.run();
      try {
        const result = await run(unit, session.tx);
        // The engine drops the whole transaction on some errors (full disk, I/O). An operation that swallows such an
        // error must not let later units run outside a transaction.
        if (!db.isTransaction) throw new Error(`The transaction ended inside the operation "${unit.operation.name}"`);
        if (isolated) statement.release.run();
        stored ||= session.wrote;
        results.push(result);
      } catch (error) {
        if (!db.isTransaction) throw error;
        if (isolated) {
          statement.rollbackUnit.run();
          statement.release.run();
        } else if (session.wrote) {
          statement.rollback.run();
          return undefined;
        }
        results.push(new Failure(error));
      }
    }
    statement.commit.run();
    return { results, stored };
  }

  return {
    async commit(units) {
      try {
        // Savepoints cost a fifth of a small write and are needed only when a unit throws after its first write:
        // then nothing of the batch is kept, and it runs again with one savepoint per unit. Operations are functions
        // of the database and their input, so a second run is the first one.
        return (await attempt(units, false)) ?? (await attempt(units, true)) ?? { results: [], stored: false };
      } catch (error) {
        if (db.isTransaction) statement.rollback.run();
        return { results: units.map(() => new Failure(error)), stored: false };
      }
    },
  };
}

/** Runs a unit in a separate snapshot on a read-only connection; returns a Failure instead of throwing. */
export async function runInSnapshot({ db, tx }: Session, unit: Unit): Promise<unknown> {
  try {
    db.exec('BEGIN');
    const result = await run(unit, tx);
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    return new Failure(error);
  }
}

/** The input comes from a call that was typed by the same operation; the type is lost between threads. */
function run(unit: Unit, tx: Tx): Promise<unknown> {
  return unit.operation.run(tx, unit.input as never);
}

function prepareAll<Name extends string>(db: DatabaseSync, texts: Readonly<Record<Name, string>>): Record<Name, StatementSync> {
  const prepared = Object.entries<string>(texts).map(([name, text]) => {
    const statement = db.prepare(text);
    // See `preparedRun`: a completed commit must not be taken for a failure because of a row id.
    statement.setReadBigInts(true);
    return [name, statement];
  });
  return Object.fromEntries(prepared) as Record<Name, StatementSync>;
}

/** Finds operations by name; fails, naming the operation, when one is missing from the list or listed twice. */
export function indexOperations(operations: readonly Operation<never, unknown>[]): FindOperation {
  const byName = new Map<string, Operation<never, unknown>>();
  for (const operation of operations) {
    if (byName.has(operation.name)) throw new Error(`Two storage operations are named "${operation.name}"`);
    byName.set(operation.name, operation);
  }
  return (name) => byName.get(name) ?? unknownOperation(name);
}

function unknownOperation(name: string): Operation<never, unknown> {
  return {
    name,
    run: () => Promise.reject(new Error(`Unknown storage operation "${name}": add it to the list in storage.ts`)),
  };
}
