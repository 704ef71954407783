import type { DatabaseSync } from 'node:sqlite';
import { damaged, explainOpening } from './connection.ts';

/**
 * Checks the structure of a database table by table, so that a thread that runs it can be terminated between two tables.
 * @throws StartError `damaged`
 */
export function quickCheck(db: DatabaseSync, file: string): void {
  try {
    const tables = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`).all();
    for (const name of ['sqlite_schema', ...tables.map((table) => String(table['name']))]) {
      const finding = db.prepare(`PRAGMA quick_check("${name.replaceAll('"', '""')}")`).get()?.['quick_check'];
      if (finding !== 'ok') throw damaged(file, String(finding));
    }
  } catch (error) {
    throw explainOpening(file, error);
  }
}
