import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { FindOperation } from '../operation.ts';
import { Failure, runUnit, type Unit } from '../unit.ts';
import { createSession, type Session } from './statements.ts';

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
        const result = await runUnit(unit, session.tx);
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
    const result = await runUnit(unit, tx);
    db.exec('COMMIT');
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    return new Failure(error);
  }
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
