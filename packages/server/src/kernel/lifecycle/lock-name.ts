import { join } from 'node:path';

/** The file in the data folder whose lock the daemon holds. In a module of its own, because the lock loads SQLite. */
export function lockFileOf(dataDir: string): string {
  return join(dataDir, 'lock.db');
}
