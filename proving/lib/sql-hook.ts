import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';

/** One SQLite call on the writing thread, counted from the start of the process, that fails as a medium fails. */
export interface SqlFault {
  readonly n: number;
  readonly code: 'EIO' | 'ENOSPC' | 'BUSY';
  /** Counts only prepared statements with this text. */
  readonly only?: string;
  /** How many consecutive calls fail; one by default. */
  readonly times?: number;
}

const SqlLine = z.object({
  /** The thread: `main`, or its role in the storage. */
  role: z.string(),
  sql: z.string(),
});
export type SqlLine = z.infer<typeof SqlLine>;

/** Options of a daemon whose SQLite calls are written to a file, or one of whose calls fails. */
export function sqlHook({ fault, log }: { readonly fault?: SqlFault; readonly log?: string }) {
  return {
    hooks: [join(import.meta.dirname, 'sql-watch.ts')],
    env: { ...(fault !== undefined && { SQL_FAULT: JSON.stringify(fault) }), ...(log !== undefined && { SQL_LOG: log }) },
  };
}

export function readSqlLog(file: string): SqlLine[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => SqlLine.parse(JSON.parse(line)));
}
