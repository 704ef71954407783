import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import type { Db } from '../../../packages/server/src/kernel/db/db.ts';
import { openInlinePostgres } from '../../../packages/server/src/kernel/db/postgres/inline.ts';
import { valueTypes } from '../../../packages/server/src/kernel/db/postgres/values.ts';
import { openInlineDb } from '../../../packages/server/src/kernel/db/sqlite/inline.ts';
import { migrations, operations as registered } from '../../../packages/server/src/transactions/registry.ts';
import type { Look } from './driver.ts';
import { commitSlowly, countStored, isStored, storeSlowly } from './slow-write.ts';

const operations = [...registered, storeSlowly, commitSlowly, countStored, isStored];
const isUrl = (place: string) => place.startsWith('postgres:');

/** Opens the database of a place: a folder, or the URL of PostgreSQL. */
export function openAt(place: string): Promise<Db> {
  return isUrl(place)
    ? openInlinePostgres({ address: { url: place }, migrations, operations })
    : openInlineDb({ dataDir: place, migrations, operations });
}

/** Opens what reads rows of a place. */
export async function lookAt(place: string): Promise<{ readonly look: Look; readonly close: () => Promise<void> }> {
  if (isUrl(place)) {
    const client = new Client({ connectionString: place, types: valueTypes });
    await client.connect();
    return { look: async (sql) => (await client.query(sql)).rows, close: () => client.end() };
  }
  const db = new DatabaseSync(join(place, 'gatehouse.db'), { readOnly: true });
  return { look: (sql) => Promise.resolve(db.prepare(sql).all()), close: () => Promise.resolve(db.close()) };
}
