import { operation, raw } from '../operation.ts';

/** Writes a page without changing data, to find out whether the disk accepts writes again. Every storage thread knows it. */
export const tryWrite = operation('storage.tryWrite', async (tx, _input: Record<string, never>): Promise<void> => {
  await tx.build((db, sql) => raw(db, sql`PRAGMA user_version = 0`));
});
