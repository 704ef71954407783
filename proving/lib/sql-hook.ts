import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';

/** One call of SQLite on the thread that writes, counted from the start of the process, which fails as a medium fails. */
export interface SqlFault {
  readonly n: number;
  readonly code: 'EIO' | 'ENOSPC' | 'BUSY';
  /** Counts the prepared statements with this text alone. */
  readonly only?: string;
  /** How many of them in a row; one by itself. */
  readonly times?: number;
}

const SqlLine = z.object({
  /** The thread: `main`, or what it does for the storage. */
  role: z.string(),
  sql: z.string(),
});
export type SqlLine = z.infer<typeof SqlLine>;

/** What to give to a daemon, so that its calls of SQLite are written to a file or one of them fails. */
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
