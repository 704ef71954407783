import { CliError } from '../failure.ts';
import type { Io } from '../io.ts';

/** An output line of a daemon job: progress, then a result or an error. */
interface JobLine<Result> {
  readonly progress?: JobProgress;
  readonly result?: Result;
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string };
}

interface JobProgress {
  readonly done: number;
  readonly total: number;
  /** What an import is doing. */
  readonly phase?: 'copy' | 'compare';
  readonly table?: string;
  readonly rows?: number;
  readonly tableRows?: number;
}

/** Result of a backup or restore. */
export interface JobResult {
  readonly file: string;
  readonly bytes: number;
  /** Path of the former data after a `restore`. */
  readonly previous?: string;
}

/** Reads the output of a daemon job, shows its progress in a terminal and returns its result. */
export async function followJob<Result = JobResult>(lines: AsyncIterable<string>, title: string, io: Io): Promise<Result> {
  const showsProgress = io.stdout.isTTY === true;
  for await (const text of lines) {
    const line = parseLine<Result>(text);
    if (line?.error !== undefined) throw new CliError(line.error.message, { hint: line.error.hint });
    if (line?.result !== undefined) return line.result;
    if (showsProgress && line?.progress !== undefined) io.stderr.write(`\r${title} ${percent(line.progress)} %${describe(line.progress)}\x1b[K`);
    if (showsProgress && line?.progress?.done === line?.progress?.total) io.stderr.write('\r\x1b[K');
  }
  throw new CliError(`${title} ended without a result.`, { hint: 'See the daemon log for details.' });
}

function describe({ phase, table, rows, tableRows }: JobProgress): string {
  return phase === undefined ? '' : ` · ${phase === 'copy' ? 'copying' : 'comparing'} ${table}, row ${rows} of ${tableRows}`;
}

function percent({ done, total }: { done: number; total: number }): number {
  return total === 0 ? 100 : Math.floor((100 * done) / total);
}

/** Parses a line; ignores other lines, such as warnings of the runtime. */
function parseLine<Result>(text: string): JobLine<Result> | undefined {
  try {
    const value: JobLine<Result> | null = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
