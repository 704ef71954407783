import { databaseOf, type TestDatabase } from '../kernel/db/postgres/testing/test-database.ts';
import { migrations } from '../transactions/registry.ts';

/** Returns an empty database for a home; the same one again for the same home. */
export function openDatabaseOf(homeDir: string): Promise<TestDatabase> {
  return databaseOf(homeDir, migrations);
}
