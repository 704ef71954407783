/** The file in the data folder whose lock the daemon holds. In a module of its own, because the lock loads SQLite. */
export const lockFileName = 'lock.db';
