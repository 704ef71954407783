import { createInterface } from 'node:readline/promises';
import { CliError, usageError } from '../failure.ts';
import type { Io } from '../io.ts';

/** Asks for confirmation; without a terminal, `--yes` is required. */
export async function confirm(question: string, io: Io): Promise<void> {
  if (!(await ask(question, io))) throw new CliError('Nothing was changed.');
}

/** Asks a question; everything but yes means no. */
export async function ask(question: string, io: Io): Promise<boolean> {
  if (io.stdin.isTTY !== true) throw usageError('Confirmation needs a terminal.', 'Pass --yes to skip it.');
  const terminal = createInterface({ input: io.stdin, output: io.stderr });
  try {
    const answer = await terminal.question(`${question} [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
