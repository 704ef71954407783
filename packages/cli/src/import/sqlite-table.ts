import { mkdtemp, copyFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../failure.ts';
import type { Left } from './bundle.ts';
import type { Values } from './parts.ts';
import type { SourceFolder } from './source-folder.ts';

const maxRows = 20_000;

/**
 * Returns the rows of a table of an SQLite file, undefined without the file. Reads a copy: opening the original could change it,
 * and the product may be running.
 */
export async function readTable(
  source: SourceFolder,
  path: string,
  table: string,
  columns: readonly string[],
  left: Left[],
): Promise<readonly Values[] | undefined> {
  const file = await source.file(path, maxDatabaseBytes);
  if (file === undefined) return undefined;
  const dir = await mkdtemp(join(tmpdir(), 'gatehouse-import-'));
  try {
    const copy = join(dir, 'copy.db');
    await copyFile(file, copy);
    // What was written last may be in its log only.
    const log = await source.file(`${path}-wal`, maxDatabaseBytes);
    if (log !== undefined) await copyFile(log, `${copy}-wal`);
    const { DatabaseSync } = await import('node:sqlite');
    using db = new DatabaseSync(copy, { allowExtension: false });
    // Not a view of this name: it can be a query that never ends.
    const known = db
      .prepare("SELECT name FROM pragma_table_info(?1) WHERE EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)")
      .all(table)
      .map(({ name }) => name);
    const missing = columns.filter((column) => !known.includes(column));
    if (known.length === 0 || missing.length > 0) {
      left.push({
        what: `table ${table}`,
        from: path,
        reason: known.length === 0 ? 'there is no such table' : `it has no column ${missing.join(', ')}`,
      });
      return [];
    }
    const rows = db.prepare(`SELECT * FROM "${table}" LIMIT ${maxRows + 1}`).all();
    if (rows.length > maxRows)
      left.push({
        what: `rows of ${table}`,
        from: path,
        reason: `only the first ${maxRows} are read`,
      });
    return rows.slice(0, maxRows);
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`${path}: expected an SQLite database (${error instanceof Error ? error.message : 'not readable'}).`, {
      hint: 'Nothing was imported.',
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const maxDatabaseBytes = 1024 * 1024 * 1024;
