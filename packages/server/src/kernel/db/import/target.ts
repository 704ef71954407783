import type { Client } from 'pg';
import { AppError } from '../../app-error.ts';
import { checkDatabase, checkPermission, importTable, lockSchema, migratePostgres, unlockSchema } from '../postgres/migrate.ts';
import { placeOf } from '../postgres/place.ts';
import type { Migration } from '../operation.ts';
import { quoteName } from './row-text.ts';

/** A home folder as the target remembers it. */
export interface ImportOrigin {
  /** Id of the data folder. */
  readonly homeId: string;
  /** Changes when the data does. */
  readonly stamp: string;
}

export interface CopiedTable {
  readonly rows: number;
  /** Texts in which U+0000 was replaced. */
  readonly replaced: number;
}

export type Progress = Readonly<Record<string, CopiedTable>>;

export type TargetState =
  | { readonly state: 'running'; readonly copied: Progress }
  /** This home was imported earlier, with this report. */
  | { readonly state: 'done'; readonly report: unknown };

interface Row {
  readonly state: 'running' | 'done';
  readonly homeId: string;
  readonly stamp: string;
  readonly copied: Progress;
  readonly report: unknown;
}

/** `gati`; held as long as an import runs. */
const importLock = 0x67617469;
/** A server notices a killed import within moments. */
const waitMs = 10_000;

export interface TargetOptions {
  readonly client: Client;
  readonly url: string;
  readonly migrations: readonly Migration[];
  readonly origin: ImportOrigin;
  readonly nowMs: number;
  readonly programVersion: string;
  readonly waitMs?: number | undefined;
}

/**
 * Makes an empty database the target of this import, or takes up one that was interrupted: where the home is as it was then, what is copied
 * stays, else everything goes. From the first change on no daemon starts on it (`migratePostgres`).
 * @throws AppError when the database is neither empty nor the target of this home.
 */
export async function openTarget(options: TargetOptions): Promise<TargetState> {
  const { client, migrations, origin, nowMs, programVersion } = options;
  await client.query(
    `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET synchronous_commit = on; SET lock_timeout = ${options.waitMs ?? waitMs}`,
  );
  await takeImportLock(options);
  const place = placeOf(options.url);
  await checkDatabase(client);
  await lockSchema(client, place);
  try {
    const earlier = await readRow(client);
    if (earlier === undefined) await begin(options, place);
    else if (earlier.homeId !== origin.homeId) {
      throw new AppError(
        'precondition_failed',
        `${place} ${earlier.state === 'done' ? 'holds' : 'is the target of an unfinished import of'} another home: an import needs an empty database.`,
      );
    } else if (earlier.state === 'done') {
      if (earlier.stamp === origin.stamp) return { state: 'done', report: earlier.report };
      throw new AppError('precondition_failed', `${place} holds an earlier state of this home: an import needs an empty database.`);
    }
    await migratePostgres(client, migrations, { nowMs, programVersion, importing: true });
    if (earlier !== undefined && earlier.stamp === origin.stamp) return { state: 'running', copied: earlier.copied };
    if (earlier !== undefined) await startOver(client, origin);
    return { state: 'running', copied: {} };
  } finally {
    await unlockSchema(client);
  }
}

async function takeImportLock({ client, url }: TargetOptions): Promise<void> {
  try {
    await client.query('SELECT pg_advisory_lock($1)', [importLock]);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === '55P03')) throw error;
    throw new AppError('conflict', `Another import into ${placeOf(url)} is running.`, { cause: error });
  }
}

async function readRow(client: Client): Promise<Row | undefined> {
  const { rows: found } = await client.query<{ exists: boolean }>(
    `SELECT to_regclass(format('%I.${importTable}', current_schema())) IS NOT NULL AS exists`,
  );
  if (found[0]?.exists !== true) return undefined;
  const { rows } = await client.query<Row>(`SELECT state, home_id AS "homeId", stamp, copied, report FROM ${importTable} WHERE id = 1`);
  return rows[0];
}

async function begin({ client, origin, programVersion, nowMs }: TargetOptions, place: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
      AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e') ORDER BY relname LIMIT 4`,
  );
  const names = rows.map(({ name }) => name);
  if (names.length > 0) {
    throw new AppError(
      'precondition_failed',
      `${place} is not empty (${names.slice(0, 3).join(', ')}${names.length > 3 ? ', …' : ''}): an import needs an empty database.`,
    );
  }
  await checkPermission(client, place);
  await client.query('BEGIN');
  await client.query(`CREATE TABLE ${importTable} (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    state TEXT NOT NULL,
    home_id TEXT NOT NULL,
    stamp TEXT NOT NULL,
    program_version TEXT NOT NULL,
    started_at_ms BIGINT NOT NULL,
    copied JSONB NOT NULL,
    report JSONB
  )`);
  await client.query(`INSERT INTO ${importTable} VALUES (1, 'running', $1, $2, $3, $4, '{}')`, [origin.homeId, origin.stamp, programVersion, nowMs]);
  await client.query('COMMIT');
}

/** Empties all tables, of what migrations inserted as well: a copy brings it along. */
async function startOver(client: Client, { stamp }: ImportOrigin): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')`,
  );
  const names = rows.map(({ name }) => name).filter((name) => name !== importTable && name !== 'schema_migration');
  await client.query('BEGIN');
  await client.query(`TRUNCATE ${names.map(quoteName).join(', ')}`);
  await client.query(`UPDATE ${importTable} SET stamp = $1, copied = '{}'`, [stamp]);
  await client.query('COMMIT');
}

/** Part of the transaction that copies the table. */
export async function noteCopied(client: Client, name: string, copied: CopiedTable): Promise<void> {
  await client.query(`UPDATE ${importTable} SET copied = copied || jsonb_build_object($1::text, $2::jsonb)`, [name, JSON.stringify(copied)]);
}

/** The copy differs from the home: the next attempt starts over. */
export async function distrustCopy(client: Client): Promise<void> {
  await client.query(`UPDATE ${importTable} SET stamp = ''`);
}

export interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[];
}

/** Ends the import: daemons start on the database now. */
export async function finishTarget(client: Client, statements: readonly Statement[], report: object): Promise<void> {
  await client.query('BEGIN');
  for (const { text, values = [] } of statements) await client.query(text, [...values]);
  await client.query(`UPDATE ${importTable} SET state = 'done', report = $1`, [JSON.stringify(report)]);
  await client.query('COMMIT');
}
