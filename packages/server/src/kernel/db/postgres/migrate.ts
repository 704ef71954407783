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
  /** The newest step that the program knows. */
  readonly programSchema: number;
  /** Numbers of the steps that were run just now. */
  readonly applied: readonly string[];
}

export interface MigrateOptions {
  readonly nowMs: number;
  readonly programVersion: string;
  /** Set by the import of a SQLite home, until whose end everything else is refused. */
  readonly importing?: boolean;
}

/** One row about the SQLite home that was imported, or is being imported, into the database; made and used by `import/target.ts`. */
export const importTable = 'storage_import';

/** `gate`; locks of this kind are known by it in `pg_locks`. */
const lockKey = 0x67617465;
/** Longer than a change of the schema takes elsewhere. */
const turnTimeout = '60s';
/** A change waiting for a lock holds up everything that comes after it: it gives up soon, lets the others pass and tries again. */
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
  await lockSchema(client, place);
  try {
    if (options.importing !== true) await refuseUnfinishedImport(client, place);
    const applied = await readApplied(client, place);
    const pending = pendingSteps({ place, applied, steps, programVersion: options.programVersion });
    const isNew = applied.length === 0;
    if (isNew) await checkPermission(client, place);
    if (!isNew && pending.length > 0) await awaitActive(client, place, pending);
    for (const group of isNew ? [pending] : pending.map((step) => [step])) await applyGroup(client, group, isNew, options);
    const schemaVersion = Math.max(applied.at(-1)?.number ?? 0, steps.at(-1)?.number ?? 0);
    return { schemaVersion, programSchema: steps.at(-1)?.number ?? 0, applied: pending.map(({ number }) => String(number)) };
  } finally {
    await unlockSchema(client);
  }
}

/** @throws StartError while only a part of a SQLite home has been copied into the database. */
async function refuseUnfinishedImport(client: MigrationClient, place: string): Promise<void> {
  const { rows: found } = await client.query(`SELECT to_regclass(format('%I.${importTable}', current_schema())) IS NOT NULL AS exists`);
  if (found[0]?.['exists'] !== true) return;
  const { rows } = await client.query(`SELECT 1 FROM ${importTable} WHERE state <> 'done'`);
  if (rows.length === 0) return;
  throw new StartError(
    'import_unfinished',
    `${place} is the target of an import that is not complete: repeat "gatehouse storage import" with the home that it came from, or use an empty database.`,
  );
}

/**
 * Returns what the database is called in errors. Pages are read in the order of ids: as bytes, as SQLite does, not by the rules of a language.
 * @throws StartError when it cannot hold our tables
 */
export async function checkDatabase(client: MigrationClient): Promise<string> {
  const { rows } = await client.query(
    `SELECT current_database() AS name, current_schema() AS schema, quote_ident(current_schema()) AS quoted, current_setting('search_path') AS path,
      current_setting('server_encoding') AS encoding, 'a' > 'B' AND U&'\\00E4' > 'z' AND 'a-c' < 'ab' AND lower(U&'\\00C4') = U&'\\00E4' AS ordered`,
  );
  const place = `Database "${String(rows[0]?.['name'])}"`;
  const { schema, quoted, path } = rows[0] ?? {};
  if (schema === null)
    throw new StartError(
      'unusable',
      `${place} has no schema for the tables: search_path names none that exists (it is: ${String(path) || 'empty'}). Create one, or set another search_path for the role.`,
    );
  if (schema !== quoted)
    throw new StartError(
      'unusable',
      `${place} would keep the tables in the schema ${String(quoted)}, whose name needs quotes: use one of small letters, digits and _.`,
    );
  if (rows[0]?.['encoding'] !== 'UTF8' || rows[0]['ordered'] !== true) {
    throw new StartError(
      'unusable',
      `${place} does not order texts by their bytes: create it with CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'.`,
    );
  }
  return place;
}

/** @throws StartError when the role may not make the tables; one that has them needs no such permission. */
export async function checkPermission(client: MigrationClient, place: string): Promise<void> {
  const { rows } = await client.query(
    `SELECT current_user AS role, current_schema() AS schema, has_schema_privilege(current_schema(), 'CREATE') AS allowed`,
  );
  const { role, schema, allowed } = rows[0] ?? {};
  if (allowed === true) return;
  throw new StartError(
    'unusable',
    `${place}: the role ${String(role)} may not create tables in its schema ${String(schema)}. Make it the owner of the database, or GRANT CREATE ON SCHEMA ${String(schema)}.`,
  );
}

/** Waits until no other program changes the schema. May be held more than once by the same connection. */
export async function lockSchema(client: MigrationClient, place: string): Promise<void> {
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

export async function unlockSchema(client: MigrationClient): Promise<void> {
  // A connection that broke has released it.
  await client.query('SELECT pg_advisory_unlock($1)', [lockKey]).catch(() => undefined);
}

async function readApplied(client: MigrationClient, place: string): Promise<readonly AppliedStep[]> {
  const { rows: found } = await client.query(
    `SELECT count(*)::int AS tables, to_regclass(format('%I.schema_migration', current_schema())) IS NOT NULL AND (
        SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(format('%I.schema_migration', current_schema())) AND attname = 'compatible_from'
      ) = 1 AS ours
      FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND relname <> '${importTable}'`,
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

/** Refuses steps that the program of the active daemon does not know how to live with. */
async function awaitActive(client: MigrationClient, place: string, pending: readonly Step[]): Promise<void> {
  const { rows: tables } = await client.query(`SELECT 1 AS found WHERE to_regclass('active_node') IS NOT NULL`);
  if (tables.length === 0) return;
  const { rows } = await client.query(
    `SELECT a.schema_version, n.version FROM active_node a JOIN node n ON n.boot_id = a.boot_id
      WHERE n.state IN ('live', 'draining') AND n.lease_until_ms > floor(extract(epoch from clock_timestamp()) * 1000)`,
  );
  const [active] = rows;
  if (active === undefined || Number(active['schema_version']) >= Math.max(...pending.map(({ compatibleFrom }) => compatibleFrom))) return;
  throw new StartError(
    'awaits_active',
    `${place} is used by version ${String(active['version'])}, which cannot continue with schema ${pending.at(-1)?.number}: it is changed when that daemon has stopped.`,
  );
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
