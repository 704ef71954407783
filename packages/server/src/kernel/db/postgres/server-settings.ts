import type { Connection } from './connection.ts';

interface Settings {
  readonly version: string;
  readonly versionNumber: number;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly synchronousStandbys: string;
  readonly standardStrings: string;
  readonly standbys: number;
}

/** The server and the database as they are at the start. */
export interface Inspection {
  readonly version: string;
  readonly bytes: number;
  /** Why the server may not keep what the daemon promises. */
  readonly warnings: readonly string[];
}

const oldestVersion = 140_000;

const question = `SELECT current_setting('server_version') AS version,
  pg_database_size(current_database()) AS bytes,
  current_setting('server_version_num')::int AS "versionNumber",
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS "fullPageWrites",
  current_setting('synchronous_standby_names') AS "synchronousStandbys",
  (SELECT reset_val FROM pg_settings WHERE name = 'standard_conforming_strings') AS "standardStrings",
  (SELECT count(*) FROM pg_stat_replication) AS standbys`;

export async function inspectServer(connection: Connection): Promise<Inspection> {
  const [settings] = (await connection.execute(undefined, question, [])).rows as [Settings & { readonly bytes: number }];
  return { version: settings.version, bytes: settings.bytes, warnings: warningsOf(settings) };
}

export function warningsOf(settings: Settings): readonly string[] {
  const warnings: string[] = [];
  if (settings.versionNumber < oldestVersion) warnings.push(`PostgreSQL ${settings.version} is older than 14, the oldest version that is supported`);
  if (settings.fsync !== 'on') warnings.push('PostgreSQL runs with fsync = off: a power failure loses acknowledged changes, or the whole database');
  if (settings.fullPageWrites !== 'on') warnings.push('PostgreSQL runs with full_page_writes = off: a power failure may damage the database');
  if (settings.standbys > 0 && settings.synchronousStandbys === '')
    warnings.push('The standbys of PostgreSQL are asynchronous (synchronous_standby_names is empty): a failover loses the last acknowledged changes');
  if (settings.standardStrings !== 'on') warnings.push('PostgreSQL is configured with standard_conforming_strings = off; each session sets it to on');
  return warnings;
}
