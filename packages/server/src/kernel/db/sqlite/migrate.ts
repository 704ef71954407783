import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { StartError } from '../../lifecycle/start-error.ts';
import type { Migration } from '../operation.ts';
import { integerPragma } from './connection.ts';
import { applicationId } from './database-files.ts';

interface AppliedStep {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
}

interface Step extends AppliedStep {
  readonly up: readonly string[];
}

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
  const steps = orderSteps(migrations);
  const objects = db.prepare('SELECT count(*) AS count FROM sqlite_schema').get()?.['count'];
  if (objects === 0) return { existing: false, current: 0, pending: steps };
  if (integerPragma(db, 'application_id') !== applicationId) {
    throw new StartError('foreign_database', `${file} is a database of another program: move it away or choose another home folder.`);
  }
  const applied = db.prepare('SELECT number, name, checksum FROM schema_migration ORDER BY number').all() as unknown as AppliedStep[];
  const current = applied.at(-1)?.number ?? 0;
  const newest = steps.at(-1)?.number ?? 0;
  const byNumber = new Map(steps.map((step) => [step.number, step]));
  for (const record of applied) {
    const step = byNumber.get(record.number);
    if (step === undefined) throw newerSchema(db, file, current, newest, programVersion);
    if (step.checksum !== record.checksum) {
      throw new StartError(
        'changed_migration',
        `Migration ${record.number} ("${record.name}") of ${file} was applied with other statements than this program has: use the program that wrote the database, or restore a backup.`,
      );
    }
  }
  const known = new Set(applied.map((record) => record.number));
  const pending = steps.filter((step) => !known.has(step.number));
  const late = pending.find((step) => step.number < current);
  if (late !== undefined) {
    throw new StartError(
      'changed_migration',
      `Migration ${late.number} ("${late.name}") comes before ${current}, which ${file} has already: migrations only go forward.`,
    );
  }
  return { existing: current > 0, current, pending };
}

function newerSchema(db: DatabaseSync, file: string, current: number, newest: number, programVersion: string): StartError {
  const writer = db.prepare('SELECT program_version FROM schema_migration ORDER BY number DESC LIMIT 1').get()?.['program_version'];
  return new StartError(
    'newer_schema',
    `${file} has schema ${current}, written by version ${String(writer)}; this is version ${programVersion}, which knows schemas up to ${newest}. Start the newer program, or restore a backup made before the upgrade.`,
  );
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
        for (const statement of step.up) db.exec(statement);
        if (db.prepare('PRAGMA foreign_key_check').get() !== undefined) throw new Error('it leaves rows that refer to missing ones');
        record.run(step.number, step.name, step.checksum, nowMs, programVersion);
      }
      db.exec('COMMIT');
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK');
      const text = error instanceof Error ? error.message : String(error);
      throw new Error(`Migration ${current?.number} ("${current?.name}") failed: ${text}`, { cause: error });
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

/** The highest number of a list; 0 for none. */
export function newestSchema(migrations: readonly Migration[]): number {
  return orderSteps(migrations).at(-1)?.number ?? 0;
}

function orderSteps(migrations: readonly Migration[]): Step[] {
  const steps = migrations.map(({ id, up }) => {
    const [, digits, name] = /^(\d{3,})-([a-z0-9-]+)$/.exec(id) ?? [];
    if (digits === undefined || name === undefined) throw new Error(`Migration id "${id}" must be NNN-name, for example 010-conversations`);
    return { number: Number(digits), name, up, checksum: createHash('sha256').update(JSON.stringify(up)).digest('hex') };
  });
  steps.sort((a, b) => a.number - b.number);
  for (const [index, step] of steps.entries()) {
    if (steps[index + 1]?.number === step.number)
      throw new Error(`Two migrations have the number ${step.number}: "${step.name}" and "${steps[index + 1]?.name}"`);
  }
  return steps;
}
