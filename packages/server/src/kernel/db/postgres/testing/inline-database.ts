import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Db } from '../../db.ts';
import type { InlineOptions } from '../../sqlite/inline.ts';
import { openInlinePostgres } from '../inline.ts';
import { createTestDatabase } from './test-database.ts';

/** Opens a fresh database, or that of the same folder again: tests name a folder to find their data once more. */
export async function openInlineTestDatabase({ dataDir, operations, migrations }: InlineOptions): Promise<Db> {
  const note = dataDir === undefined ? undefined : join(dataDir, 'postgres-url');
  if (note !== undefined && existsSync(note)) return openInlinePostgres({ address: { url: readFileSync(note, 'utf8') }, operations, migrations });
  const database = await createTestDatabase(migrations);
  if (note !== undefined && dataDir !== undefined) {
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(note, database.url);
  }
  const db = await openInlinePostgres({ address: { url: database.url }, operations, migrations });
  return {
    ...db,
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]();
      // One with a folder ends with the server of the run.
      if (note === undefined) await database[Symbol.asyncDispose]();
    },
  };
}
