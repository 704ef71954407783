import type { DatabaseSync } from 'node:sqlite';
import { StartError } from '../../lifecycle/start-error.ts';
import { type AppliedStep, orderSteps, pendingSteps, type Step, stepFailure } from '../migration-steps.ts';
import type { Migration } from '../operation.ts';
import { integerPragma } from './connection.ts';
import { applicationId } from './database-files.ts';

export interface MigrationPlan {
  /** True when the file may hold data, so that a backup is due before `pending` runs. */
  readonly existing: boolean;
  /** Highest number applied so far; 0 in a new file. */
  readonly current: number;
  readonly pending: readonly Step[];
}

/**
 * Compares the recorded migrations of a file with those of this program.
 * @throws StartError when the file is not ours, is newer than this program, or records other statements under the same number.
 */
export function planMigrations(db: DatabaseSync, file: string, migrations: readonly Migration[], programVersion: string): MigrationPlan {
  const steps = orderSteps(migrations, ({ up }) => up);
  const objects = db.prepare('SELECT count(*) AS count FROM sqlite_schema').get()?.['count'];
  if (objects === 0) return { existing: false, current: 0, pending: steps };
  if (integerPragma(db, 'application_id') !== applicationId) {
    throw new StartError('foreign_database', `${file} is a database of another program: move it away or choose another home folder.`);
  }
  const applied = db
    .prepare('SELECT number, name, checksum, program_version AS programVersion FROM schema_migration ORDER BY number')
    .all() as unknown as AppliedStep[];
  const current = applied.at(-1)?.number ?? 0;
  return { existing: current > 0, current, pending: pendingSteps({ place: file, applied, steps, programVersion }) };
}

/**
 * Runs the pending steps and records them: in a new file all in one transaction, in an existing one each in its own. A kill leaves a file
 * without any step, or with whole ones.
 */
export function applyMigrations(db: DatabaseSync, plan: MigrationPlan, nowMs: number, programVersion: string): void {
  if (plan.pending.length === 0) return;
  // Rebuilding a table breaks references for a moment; they are checked before each commit instead.
  db.exec('PRAGMA foreign_keys = OFF');
  for (const steps of plan.existing ? plan.pending.map((step) => [step]) : [plan.pending]) {
    let current = steps[0];
    db.exec('BEGIN IMMEDIATE');
    try {
      if (!plan.existing) createRecords(db);
      const record = db.prepare('INSERT INTO schema_migration (number, name, checksum, applied_at_ms, program_version) VALUES (?, ?, ?, ?, ?)');
      for (const step of steps) {
        current = step;
        for (const statement of step.statements) db.exec(statement);
        if (db.prepare('PRAGMA foreign_key_check').get() !== undefined) throw new Error('it leaves rows that refer to missing ones');
        record.run(step.number, step.name, step.checksum, nowMs, programVersion);
      }
      db.exec('COMMIT');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      throw stepFailure(current, error);
    }
  }
  db.exec('PRAGMA foreign_keys = ON');
}

function createRecords(db: DatabaseSync): void {
  db.exec(`PRAGMA application_id = ${applicationId};
    CREATE TABLE IF NOT EXISTS schema_migration (
      number INTEGER PRIMARY KEY,
      name TEXT NOT NULL,
      checksum TEXT NOT NULL,
      applied_at_ms INTEGER NOT NULL,
      program_version TEXT NOT NULL
    )`);
}
