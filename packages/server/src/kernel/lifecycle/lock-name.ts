import { join } from 'node:path';

/** Returns the file in the data folder whose lock the daemon holds. A separate module, because the lock loads SQLite. */
export function lockFileOf(dataDir: string): string {
  return join(dataDir, 'lock.db');
}
