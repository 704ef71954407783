import { StartError } from '../../lifecycle/start-error.ts';
import { type AppliedStep, orderSteps, pendingSteps, type Step, stepFailure } from '../migration-steps.ts';
import type { Migration } from '../operation.ts';
import { postgresStatements } from './schema.ts';

/** One connection, which nothing else uses meanwhile. */
export interface MigrationClient {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

export interface MigratedSchema {
  /** The newest step of the database, which may be newer than the program. */
  readonly schemaVersion: number;
  /** Numbers of the steps that were run just now. */
  readonly applied: readonly string[];
}

export interface MigrateOptions {
  readonly nowMs: number;
  readonly programVersion: string;
}

/** `gate`; locks of this kind are known by it in `pg_locks`. */
const lockKey = 0x67617465;
/** Longer than a change of the schema takes elsewhere. */
const turnTimeout = '60s';
/** A change that waits for a lock holds up everything that comes after it: it gives up soon, lets the others pass and tries again. */
const lockTimeout = '2s';
const attempts = 10;
const lockNotAvailable = '55P03';

/**
 * Brings the schema of the database up to date, by one program at a time: a new one in one transaction, an existing one step by step.
 * @throws StartError when the database is not ours, cannot keep our texts in order, is newer than this program, or records other statements.
 */
export async function migratePostgres(client: MigrationClient, migrations: readonly Migration[], options: MigrateOptions): Promise<MigratedSchema> {
  const steps = orderSteps(migrations, ({ up, postgres }) => postgres ?? up, postgresStatements);
  const place = await checkDatabase(client);
  await takeTurn(client, place);
  try {
    const applied = await readApplied(client, place);
    const pending = pendingSteps({ place, applied, steps, programVersion: options.programVersion });
    const isNew = applied.length === 0;
    for (const group of isNew ? [pending] : pending.map((step) => [step])) await applyGroup(client, group, isNew, options);
    const schemaVersion = Math.max(applied.at(-1)?.number ?? 0, steps.at(-1)?.number ?? 0);
    return { schemaVersion, applied: pending.map(({ number }) => String(number)) };
  } finally {
    // A connection that broke has released it.
    await client.query('SELECT pg_advisory_unlock($1)', [lockKey]).catch(() => undefined);
  }
}

/** Pages are read in the order of ids: as bytes, as SQLite does, not by the rules of a language. */
async function checkDatabase(client: MigrationClient): Promise<string> {
  const { rows } = await client.query(
    `SELECT current_database() AS name, current_setting('server_encoding') AS encoding, 'a' > 'B' AND U&'\\00E4' > 'z' AND 'a-c' < 'ab' AND lower(U&'\\00C4') = U&'\\00E4' AS ordered`,
  );
  const place = `Database "${String(rows[0]?.['name'])}"`;
  if (rows[0]?.['encoding'] !== 'UTF8' || rows[0]['ordered'] !== true) {
    throw new StartError(
      'unusable',
      `${place} does not order texts by their bytes: create it with CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'.`,
    );
  }
  return place;
}

async function takeTurn(client: MigrationClient, place: string): Promise<void> {
  // The lock belongs to the connection and outlives the transaction, which only ends the setting.
  await client.query('BEGIN');
  try {
    await client.query(`SET LOCAL lock_timeout = '${turnTimeout}'`);
    await client.query('SET LOCAL statement_timeout = 0');
    await client.query('SELECT pg_advisory_lock($1)', [lockKey]);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    if (codeOf(error) !== lockNotAvailable) throw error;
    throw new StartError('locked', `Another program has been changing the schema of ${place} for ${turnTimeout}: wait until it is done.`);
  }
}

async function readApplied(client: MigrationClient, place: string): Promise<readonly AppliedStep[]> {
  const { rows: found } = await client.query(
    `SELECT count(*)::int AS tables, to_regclass(format('%I.schema_migration', current_schema())) IS NOT NULL AND (
        SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(format('%I.schema_migration', current_schema())) AND attname = 'compatible_from'
      ) = 1 AS ours
      FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm')`,
  );
  if (found[0]?.['tables'] === 0) return [];
  if (found[0]?.['ours'] !== true) {
    throw new StartError('foreign_database', `${place} has tables of another program: create a database for this one alone.`);
  }
  const { rows } = await client.query('SELECT number, name, checksum, program_version, compatible_from FROM schema_migration ORDER BY number');
  return rows.map((row) => ({
    number: Number(row['number']),
    name: String(row['name']),
    checksum: String(row['checksum']),
    programVersion: String(row['program_version']),
    compatibleFrom: Number(row['compatible_from']),
  }));
}

async function applyGroup(client: MigrationClient, steps: readonly Step[], isNew: boolean, options: MigrateOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    let current = steps[0];
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    try {
      await client.query(`SET LOCAL lock_timeout = '${lockTimeout}'`);
      await client.query('SET LOCAL statement_timeout = 0');
      if (isNew) await client.query(createRecords);
      for (const step of steps) {
        current = step;
        for (const statement of step.statements) await client.query(statement);
        await client.query(record, [step.number, step.name, step.checksum, options.nowMs, options.programVersion, step.compatibleFrom]);
      }
      await client.query('COMMIT');
      return;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => undefined);
      if (codeOf(error) !== lockNotAvailable || attempt === attempts) throw stepFailure(current, error);
    }
  }
}

const createRecords = `CREATE TABLE IF NOT EXISTS schema_migration (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at_ms BIGINT NOT NULL,
  program_version TEXT NOT NULL,
  compatible_from BIGINT NOT NULL
)`;
const record =
  'INSERT INTO schema_migration (number, name, checksum, applied_at_ms, program_version, compatible_from) VALUES ($1, $2, $3, $4, $5, $6)';

/** After rows were copied with their ids: lets each generated id continue above the highest one. */
export async function continueIds(client: MigrationClient): Promise<void> {
  const { rows } = await client.query(
    `SELECT format('SELECT setval(%L, (SELECT coalesce(max(%I), 0) + 1 FROM %I), false)',
        pg_get_serial_sequence(format('%I.%I', table_schema, table_name), column_name), column_name, table_name) AS statement
      FROM information_schema.columns WHERE table_schema = current_schema() AND is_identity = 'YES'`,
  );
  for (const { statement } of rows) await client.query(String(statement));
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
