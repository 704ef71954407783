import { text } from 'node:stream/consumers';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';

/** Returns the question of a command line; undefined for an interactive terminal without text. */
export async function readQuestion(words: readonly string[], io: Io): Promise<string | undefined> {
  if (words.length === 0 && io.stdin.isTTY === true) return undefined;
  // Reads standard input only when needed: a pipe that is never closed would hang a call with text.
  const needsInput = words.length === 0 || words.includes('-');
  const input = needsInput ? (await text(io.stdin)).trim() : '';
  const question = words.length === 0 ? input : words.map((word) => (word === '-' ? `\n\n${input}` : word)).join(' ');
  if (question.trim() === '') throw usageError('The question is empty.');
  return question.trim();
}
