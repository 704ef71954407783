import { emptyDatabaseOf } from '@gatehouse/server/test-database';
import { startPostgres } from '@gatehouse/testkit/postgres';

/** Opens a database without tables for a home: on the server of the test run in `npm test`, on a separate one in `npm run prove`. */
export async function openPostgresDatabase(home: string): Promise<AsyncDisposable & { readonly url: string }> {
  if (process.env['GATEHOUSE_TEST_POSTGRES'] !== undefined) return emptyDatabaseOf(home);
  const server = await startPostgres();
  return { url: server.url(), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
