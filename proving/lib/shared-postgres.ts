import { startPostgres } from '@gatehouse/testkit/postgres';
import { createEmptyDatabase, type TestDatabase } from '../../packages/server/src/kernel/db/postgres/testing/test-database.ts';

/** Opens a database without tables: on the server of the test run in `npm test`, on a separate one in `npm run prove`. */
export async function openPostgresDatabase(): Promise<TestDatabase> {
  if (process.env['GATEHOUSE_TEST_POSTGRES'] !== undefined) return createEmptyDatabase();
  const server = await startPostgres();
  return { url: server.url(), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
