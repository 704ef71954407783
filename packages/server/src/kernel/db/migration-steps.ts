import { createHash } from 'node:crypto';
import { StartError } from '../lifecycle/start-error.ts';
import type { Log } from '../log.ts';
import type { Migration } from './operation.ts';

/** A step as a database recorded it. */
export interface AppliedStep {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly programVersion: string;
  /** Its own number when absent. */
  readonly compatibleFrom?: number;
}

/** A step as one engine runs it. */
export interface Step {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly compatibleFrom: number;
  readonly statements: readonly string[];
}

export interface StepComparison {
  /** The database, as messages name it. */
  readonly place: string;
  /** Sorted by number. */
  readonly applied: readonly AppliedStep[];
  readonly steps: readonly Step[];
  readonly programVersion: string;
}

/**
 * Returns the steps that a database does not have yet.
 * @throws StartError when it is too new for this program, or records other statements under the same number.
 */
export function pendingSteps({ place, applied, steps, programVersion }: StepComparison): readonly Step[] {
  const current = applied.at(-1)?.number ?? 0;
  const newest = steps.at(-1)?.number ?? 0;
  const compatibleFrom = Math.max(0, ...applied.map((record) => record.compatibleFrom ?? record.number));
  const byNumber = new Map(steps.map((step) => [step.number, step]));
  for (const record of applied) {
    const step = byNumber.get(record.number);
    if (step === undefined) {
      if (record.number > newest && newest >= compatibleFrom) continue;
      throw new StartError(
        'newer_schema',
        `${place} has schema ${current}, written by version ${applied.at(-1)?.programVersion}; this is version ${programVersion}, which knows schemas up to ${newest}. Start the newer program, or restore a backup made before the upgrade.`,
      );
    }
    if (step.checksum !== record.checksum) {
      throw new StartError(
        'changed_migration',
        `Migration ${record.number} ("${record.name}") of ${place} was applied with other statements than this program has: use the program that wrote the database, or restore a backup.`,
      );
    }
  }
  const known = new Set(applied.map((record) => record.number));
  const pending = steps.filter((step) => !known.has(step.number));
  const late = pending.find((step) => step.number < current);
  if (late !== undefined) {
    throw new StartError(
      'changed_migration',
      `Migration ${late.number} ("${late.name}") comes before ${current}, which ${place} has already: migrations only go forward.`,
    );
  }
  return pending;
}

/** The highest number of a list; 0 for none. */
export function newestSchema(migrations: readonly Migration[]): number {
  return orderSteps(migrations, ({ up }) => up).at(-1)?.number ?? 0;
}

/** Parses and sorts migrations; `textsOf` returns what their checksums cover. */
export function orderSteps(
  migrations: readonly Migration[],
  textsOf: (migration: Migration) => readonly string[],
  toStatements: (migration: Migration) => readonly string[] = textsOf,
): readonly Step[] {
  const steps = migrations.map((migration) => {
    const [, digits, name] = /^(\d{3,})-([a-z0-9-]+)$/.exec(migration.id) ?? [];
    if (digits === undefined || name === undefined) throw new Error(`Migration id "${migration.id}" must be NNN-name, for example 010-conversations`);
    const number = Number(digits);
    return {
      number,
      name,
      checksum: createHash('sha256')
        .update(JSON.stringify(textsOf(migration)))
        .digest('hex'),
      compatibleFrom: migration.compatibleFrom ?? number,
      statements: toStatements(migration),
    };
  });
  steps.sort((a, b) => a.number - b.number);
  for (const [index, step] of steps.entries()) {
    if (steps[index + 1]?.number === step.number)
      throw new Error(`Two migrations have the number ${step.number}: "${step.name}" and "${steps[index + 1]?.name}"`);
  }
  return steps;
}

/** A failed step, named for the person at the terminal. */
export function stepFailure(step: Step | undefined, error: unknown): Error {
  const text = error instanceof Error ? error.message : String(error);
  return new Error(`Migration ${step?.number} ("${step?.name}") failed: ${text}`, { cause: error });
}

/** Logs the steps that a start ran, by their numbers; of a new database, that it was created. */
export function logMigrations(log: Log, { applied, schemaVersion }: { readonly applied: readonly string[]; readonly schemaVersion: number }): void {
  if (applied.length === 0) return;
  if (applied.some((step) => /(?:^|\D)1$/u.test(step))) log.info({ schemaVersion }, 'Created the database');
  else log.info({ applied, schemaVersion }, 'Migrated the database schema');
}
