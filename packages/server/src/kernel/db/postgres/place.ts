import { serversOf } from './server-address.ts';

/** Returns the URL of a database without user, password and parameters. */
export function placeOf(url: string): string {
  try {
    const [first = new URL(url), ...others] = serversOf(url).map((server) => new URL(server));
    return `${first.protocol}//${[first, ...others].map(({ host }) => host).join(',')}${first.pathname}`;
  } catch {
    return 'postgres';
  }
}

/** Why a backup is refused, and what makes one. */
export const postgresBackups =
  'The data is in PostgreSQL, which is backed up with its own tools: pgBackRest for continuous backups that can be restored to any moment, or pg_dump for a single copy';
