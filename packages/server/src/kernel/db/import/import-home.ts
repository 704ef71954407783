import { createHash } from 'node:crypto';
import { Client } from 'pg';
import { AppError } from '../../app-error.ts';
import type { Clock } from '../../clock.ts';
import { readHomeId } from '../../lifecycle/home-id.ts';
import type { Migration } from '../operation.ts';
import { findServer } from '../postgres/connection.ts';
import { continueIds } from '../postgres/migrate.ts';
import { placeOf } from '../postgres/place.ts';
import { isConnectionFailure, sqlState } from '../postgres/postgres-errors.ts';
import { type ServerAddress, serversOf } from '../postgres/server-address.ts';
import { compareTable, copyTable, DifferentCopy } from './copy-table.ts';
import { noteImported, refuseOtherImport } from './imported-note.ts';
import { quoteName } from './row-text.ts';
import { openSource, type Source, type SourceTable } from './source.ts';
import { distrustCopy, finishTarget, openTarget, type Statement } from './target.ts';

export interface ImportOptions {
  /** Locked by the caller. */
  readonly dataDir: string;
  readonly address: ServerAddress;
  readonly migrations: readonly Migration[];
  readonly programVersion: string;
  readonly clock: Clock;
  /** How long another import into the same database is waited for. */
  readonly waitMs?: number;
  /** Tables into which triggers of others write: they are copied after those. */
  readonly lastTables?: readonly string[];
  /** Run in the transaction that ends the import, after all was compared. */
  readonly finish?: readonly Statement[];
  readonly onProgress?: (progress: ImportProgress) => void;
}

export interface ImportProgress {
  /** Rows copied and rows compared, of twice the number of rows. */
  readonly done: number;
  readonly total: number;
  readonly phase: 'copy' | 'compare';
  readonly table: string;
  /** Rows of the table so far. */
  readonly rows: number;
  readonly tableRows: number;
}

export interface ImportReport {
  readonly place: string;
  /** False when an earlier import was complete, and nothing was done. */
  readonly imported: boolean;
  readonly tables: number;
  readonly rows: number;
  /** Texts in which U+0000, which PostgreSQL cannot store, was replaced by U+FFFD. */
  readonly replacedTexts: number;
  /** Exact sums of money in 1e-9 US dollars, by table and column. */
  readonly sums: Readonly<Record<string, string>>;
  /** SHA-256 over the digests of all tables. */
  readonly digest: string;
}

/** Rows between two reports of progress. */
const stride = 1_000;
const connectMs = 10_000;

/**
 * Copies the database of a stopped daemon into an empty PostgreSQL database and compares every row. A repeat after an interruption
 * continues after the last table that was complete.
 * @throws AppError or StartError saying what prevents it; the home is as before, and the target cannot be used by a daemon.
 */
export async function importHome(options: ImportOptions): Promise<ImportReport> {
  const { dataDir, address, migrations, programVersion, clock, finish = [] } = options;
  const place = placeOf(address.url);
  refuseOtherImport(dataDir, place);
  const client = await connect(address, clock);
  try {
    using source = openSource({ dataDir, migrations, programVersion });
    const origin = { homeId: readHomeId(dataDir), stamp: source.stamp };
    const target = await openTarget({ client, url: address.url, migrations, origin, nowMs: clock.now(), programVersion, waitMs: options.waitMs });
    if (target.state === 'done') {
      noteImported(dataDir, { place, atMs: clock.now() });
      return { ...(target.report as ImportReport), imported: false };
    }
    const tables = inOrder(source, options.lastTables ?? []);
    const report = createProgress(tables, options.onProgress);
    let replacedTexts = 0;
    for (const table of tables) {
      const copied = target.copied[table.name] ?? (await copyTable(client, table, report('copy', table)));
      report('copy', table)(table.rows);
      replacedTexts += copied.replaced;
    }
    await setIds(client, tables);
    // Without statistics the first queries of the daemon scan whole tables.
    await client.query('ANALYZE');
    const digest = createHash('sha256');
    for (const table of tables) {
      const compared = await compareTable(client, table, report('compare', table));
      report('compare', table)(table.rows);
      digest.update(`${table.name} ${compared.rows} ${compared.digest}\n`);
    }
    const result: ImportReport = {
      place,
      imported: true,
      tables: tables.length,
      rows: tables.reduce((sum, { rows }) => sum + rows, 0),
      replacedTexts,
      sums: Object.fromEntries(tables.flatMap(({ name, sums }) => Object.entries(sums).map(([column, sum]) => [`${name}.${column}`, sum]))),
      digest: digest.digest('hex'),
    };
    // First: at no moment can daemons start on both.
    noteImported(dataDir, { place, atMs: clock.now() });
    await finishTarget(client, finish, result);
    return result;
  } catch (error) {
    if (error instanceof DifferentCopy) await distrustCopy(client).catch(() => {});
    throw explain(error, place);
  } finally {
    await client.end().catch(() => {});
  }
}

async function connect(address: ServerAddress, clock: Clock): Promise<Client> {
  try {
    const { url, ssl } = await findServer(address, clock);
    const client = new Client({
      connectionString: url,
      ...(ssl !== undefined && { ssl }),
      application_name: 'gatehouse import',
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
    });
    // A lost connection fails the statement under way.
    client.on('error', () => {});
    await client.connect();
    return client;
  } catch (error) {
    throw new AppError('unavailable', `Cannot connect to ${placeOf(address.url)}: ${withoutSecrets(error, address.url)}`);
  }
}

/** The message of an error about an address may quote it. */
function withoutSecrets(error: unknown, url: string): string {
  const text = error instanceof Error ? error.message || String('code' in error ? error.code : error.name) : String(error);
  const servers = serversOf(url);
  const { password = '' } = servers.map((server) => URL.parse(server)).find((parsed) => parsed !== null) ?? {};
  return [url, ...servers, password, decodeURIComponent(password)]
    .filter((secret) => secret !== '')
    .reduce((kept, secret) => kept.replaceAll(secret, '…'), text);
}

function explain(error: unknown, place: string): unknown {
  if (isConnectionFailure(error)) {
    return new AppError('unavailable', `The connection to ${place} was lost: repeat the command, which continues after the last complete table.`, {
      cause: error,
    });
  }
  return sqlState(error) === undefined || !(error instanceof Error)
    ? error
    : new AppError('unavailable', `${place}: ${error.message}`, { cause: error });
}

function inOrder({ tables }: Source, last: readonly string[]): readonly SourceTable[] {
  return [...tables.filter(({ name }) => !last.includes(name)), ...tables.filter(({ name }) => last.includes(name))];
}

/** Ids of deleted rows are not given out again where SQLite promises it. */
async function setIds(client: Client, tables: readonly SourceTable[]): Promise<void> {
  await continueIds(client);
  for (const { name, key, lastId } of tables) {
    const [id] = key;
    if (lastId === undefined || lastId === 0n || id === undefined) continue;
    await client.query(
      `SELECT setval(sequence, greatest($1::bigint, (SELECT coalesce(max(${quoteName(id.name)}), 1) FROM ${quoteName(name)})))
        FROM pg_get_serial_sequence(format('%I.%I', current_schema(), $2::text), $3) AS sequence`,
      [String(lastId), name, id.name],
    );
  }
}

function createProgress(tables: readonly SourceTable[], onProgress: ImportOptions['onProgress']) {
  const total = 2 * tables.reduce((sum, { rows }) => sum + rows, 0);
  const before = new Map<string, number>();
  let sum = 0;
  for (const phase of ['copy', 'compare'] as const) {
    for (const { name, rows } of tables) {
      before.set(`${phase} ${name}`, sum);
      sum += rows;
    }
  }
  return (phase: ImportProgress['phase'], { name, rows: tableRows }: SourceTable) => {
    const earlier = before.get(`${phase} ${name}`) ?? 0;
    return (rows: number) => {
      if (rows % stride === 0 || rows === tableRows) onProgress?.({ done: earlier + rows, total, phase, table: name, rows, tableRows });
    };
  };
}
