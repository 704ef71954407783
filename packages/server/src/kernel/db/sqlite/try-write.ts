import { operation } from '../operation.ts';

/** Writes a page without changing data, to find out whether the disk accepts writes again. Every storage thread knows it. */
export const tryWrite = operation('storage.tryWrite', async (tx, _input: Record<string, never>): Promise<void> => {
  await tx.build((db, sql) => ({ compile: () => sql`PRAGMA user_version = 0`.compile(db) }));
});
