import { createInterface } from 'node:readline/promises';
import { CliError, usageError } from '../failure.ts';
import type { Io } from '../io.ts';

/** Asks for confirmation; without a terminal, `--yes` is required. */
export async function confirm(question: string, io: Io): Promise<void> {
  if (io.stdin.isTTY !== true) throw usageError('Confirmation needs a terminal.', 'Pass --yes to skip it.');
  const terminal = createInterface({ input: io.stdin, output: io.stderr });
  try {
    const answer = await terminal.question(`${question} [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('Nothing was changed.');
  } finally {
    terminal.close();
  }
}
