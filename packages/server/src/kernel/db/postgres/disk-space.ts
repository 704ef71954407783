import type { Connection } from './connection.ts';

/**
 * Fails when the disk of the server has no space, by a query too large for its memory. It changes nothing and adds nothing to the log
 * of the server (WAL), which may still have space that data has not: a server that cannot extend its log ends.
 */
export async function probeDisk(connection: Connection): Promise<void> {
  await connection.send(
    `BEGIN; SET LOCAL work_mem = '64kB'; SET LOCAL temp_tablespaces = ''; SELECT count(*) FROM generate_series(1, 20000); ROLLBACK`,
  );
}
