/** Returns the URL of a database without user, password and parameters. */
export function placeOf(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return 'postgres';
  }
}

/** Why a backup is refused, and what makes one. */
export const postgresBackups =
  'The data is in PostgreSQL, which is backed up with its own tools: pgBackRest for continuous backups that can be restored to any moment, or pg_dump for a single copy';
