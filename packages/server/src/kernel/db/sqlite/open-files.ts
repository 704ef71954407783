import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { newestSchema } from '../migration-steps.ts';
import type { Migration } from '../operation.ts';
import { backupDatabase } from './backup.ts';
import { explainOpening, openReader, openWriter } from './connection.ts';
import { databaseFile, type DatabaseFileName, mainFileName, telemetryFileName } from './database-files.ts';
import { applyMigrations, planMigrations } from './migrate.ts';

export interface OpenedFiles {
  readonly main: DatabaseSync;
  /** Absent while no migration belongs to it. */
  readonly telemetry: DatabaseSync | undefined;
  readonly schemaVersion: number;
  /** `file: NNN` of each migration that was run just now. */
  readonly applied: readonly string[];
}

export interface OpenFilesOptions {
  readonly dataDir: string;
  readonly backupsDir: string;
  readonly migrations: readonly Migration[];
  readonly nowMs: number;
  readonly programVersion: string;
}

/** Opens both files for writing and brings their schema up to date; an existing file is copied to `backupsDir` first. */
export async function openFiles(options: OpenFilesOptions): Promise<OpenedFiles> {
  const applied: string[] = [];
  const open = async (name: DatabaseFileName, migrations: readonly Migration[], sync: 'FULL' | 'NORMAL') => {
    const file = databaseFile(options.dataDir, name);
    const db = openWriter(file, sync);
    try {
      const plan = planMigrations(db, file, migrations, options.programVersion);
      if (plan.existing && plan.pending.length > 0) {
        await backupDatabase(
          file,
          join(options.backupsDir, `${name.replace('.db', '')}-before-schema-${newestSchema(migrations)}-${options.nowMs}.db`),
        );
      }
      applyMigrations(db, plan, options.nowMs, options.programVersion);
      applied.push(...plan.pending.map((step) => `${name}: ${step.number}`));
      dropStatistics(db);
      return db;
    } catch (error) {
      db.close();
      throw explainOpening(file, error);
    }
  };
  const split = splitMigrations(options.migrations);
  const main = await open(mainFileName, split.main, 'FULL');
  try {
    const telemetry = split.telemetry.length === 0 ? undefined : await open(telemetryFileName, split.telemetry, 'NORMAL');
    return { main, telemetry, schemaVersion: newestSchema(split.main), applied };
  } catch (error) {
    main.close();
    throw error;
  }
}

/**
 * Removes planner statistics that earlier versions collected when they stopped. They describe a table as it was then: every query
 * scans a table that had two rows at that time, even once it holds a million. Without statistics SQLite prefers the indexes.
 */
function dropStatistics(db: DatabaseSync): void {
  const tables = `SELECT 1 FROM sqlite_schema WHERE name IN ('sqlite_stat1', 'sqlite_stat4')`;
  if (db.prepare(tables).get() === undefined) return;
  const drop = 'DROP TABLE IF EXISTS sqlite_stat1; DROP TABLE IF EXISTS sqlite_stat4';
  // This connection has already read them. Reading them again creates the table when it is missing.
  db.exec(`${drop}; ANALYZE sqlite_schema; ${drop}`);
}

/** A connection for queries on both files: a table of the telemetry file is found by its plain name. */
export function openForQueries(dataDir: string): DatabaseSync {
  const db = openReader(databaseFile(dataDir));
  attachTelemetry(db, dataDir);
  return db;
}

export function attachTelemetry(db: DatabaseSync, dataDir: string): void {
  const file = databaseFile(dataDir, telemetryFileName);
  if (existsSync(file)) db.prepare('ATTACH ? AS telemetry').run(file);
}

export function splitMigrations(migrations: readonly Migration[]): { readonly main: readonly Migration[]; readonly telemetry: readonly Migration[] } {
  return {
    main: migrations.filter((migration) => migration.database !== 'telemetry'),
    telemetry: migrations.filter((migration) => migration.database === 'telemetry'),
  };
}
