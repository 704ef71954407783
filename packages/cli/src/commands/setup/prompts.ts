import { exitCode } from '../../exit-codes.ts';
import { CliError, usageError } from '../../failure.ts';
import type { Io } from '../../io.ts';

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly hint?: string | undefined;
}

export interface Selection {
  readonly message: string;
  readonly choices: readonly Choice[];
  /** Selected by Enter alone; the first one otherwise. */
  readonly initial?: string | undefined;
}

export interface TextQuestion {
  readonly message: string;
  readonly initial?: string | undefined;
  readonly placeholder?: string | undefined;
  /** Returns what is wrong. */
  readonly check?: ((value: string) => string | undefined) | undefined;
}

/** Questions to a person at a terminal. Ctrl-C in one of them throws `interrupted()`. */
export interface Prompts {
  select(selection: Selection): Promise<string>;
  /** The value is not shown; an empty one is allowed. */
  secret(message: string): Promise<string>;
  text(question: TextQuestion): Promise<string>;
  note(text: string): void;
  success(text: string): void;
  failure(text: string): void;
}

export function interrupted(): CliError {
  return new CliError('Stopped. What was completed is kept.', {
    code: 'interrupted',
    exitCode: exitCode.interrupted,
    hint: '`gatehouse setup` continues.',
  });
}

/** Lines shorter than this are not redrawn in place. */
const minColumns = 40;

/** Opens the questions of a terminal: line by line where the cursor cannot be moved, or a screen reader reads along. */
export async function openPrompts(io: Io): Promise<Prompts> {
  if (io.stdin.isTTY !== true) return withoutTerminal(io);
  const canRedraw = io.stderr.isTTY === true && (io.stderr.columns ?? 0) >= minColumns && io.env['TERM'] !== 'dumb';
  if (!canRedraw || (io.env['ACCESSIBLE'] ?? '') !== '') return (await import('./line-prompts.ts')).createLinePrompts(io);
  return (await import('./clack-prompts.ts')).createClackPrompts(io);
}

function withoutTerminal(io: Io): Prompts {
  const ask = (message: string) =>
    Promise.reject(usageError(`${message}: there is no terminal to ask on.`, '`gatehouse setup --help` lists the flags.'));
  const say = (text: string) => void io.stderr.write(`${text}\n`);
  return { select: ({ message }) => ask(message), secret: ask, text: ({ message }) => ask(message), note: say, success: say, failure: say };
}
