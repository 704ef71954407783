import type { Db } from '../../db.ts';
import type { InlineOptions } from '../../sqlite/inline.ts';
import { openInlinePostgres } from '../inline.ts';
import { createTestDatabase, databaseOf } from './test-database.ts';

/** Opens a fresh database, or that of the same folder again: tests name a folder to find their data once more. */
export async function openInlineTestDatabase({ dataDir, operations, migrations }: InlineOptions): Promise<Db> {
  const database = await (dataDir === undefined ? createTestDatabase(migrations) : databaseOf(dataDir, migrations));
  const db = await openInlinePostgres({ address: { url: database.url }, operations, migrations });
  /** Holds the writes so far: as on inline SQLite, a query sees the writes that were requested before it, also those that nobody waits for. */
  let writes: Promise<unknown> = Promise.resolve();
  function noting<Output>(write: Promise<Output>): Promise<Output> {
    writes = Promise.allSettled([writes, write]);
    return write;
  }
  return {
    ...db,
    write: (operation, input) => noting(db.write(operation, input)),
    telemetry: (operation, input) => noting(db.telemetry(operation, input)),
    read: async (operation, input) => (await writes, db.read(operation, input)),
    search: async (operation, input) => (await writes, db.search(operation, input)),
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]();
      // One with a folder may be opened again; it ends with the test run.
      if (dataDir === undefined) await database[Symbol.asyncDispose]();
    },
  };
}
