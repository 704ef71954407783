import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';

/** Reads a secret for a command from standard input, or asks for it without showing what is typed. Never from an argument: other users can read a command line. */
export async function readSecret(name: string, command: string, io: Io): Promise<string> {
  const value = io.stdin.isTTY === true ? await ask(name, io) : await text(io.stdin);
  // `echo` and files end with a line break that belongs to no secret.
  const secret = value.replace(/\r?\n$/, '');
  if (secret === '') throw usageError('The value is empty.', `Such as: printf %s "$KEY" | ${command}`);
  return secret;
}

/** Reads several secrets: one line each of standard input, or one question each. */
export async function readSecrets(names: readonly string[], command: string, io: Io): Promise<string[]> {
  if (names.length === 0) return [];
  if (io.stdin.isTTY === true) {
    const values: string[] = [];
    for (const name of names) values.push(await readSecret(name, command, io));
    return values;
  }
  const lines = (await text(io.stdin)).split(/\r?\n/);
  const missing = names.find((_name, index) => (lines[index] ?? '') === '');
  if (missing !== undefined)
    throw usageError(
      `No value of ${missing}: expected a line of standard input for each of ${names.join(', ')}.`,
      `Such as: printf '%s\\n' "$SECRET" | ${command}`,
    );
  return lines.slice(0, names.length);
}

async function ask(name: string, io: Io): Promise<string> {
  io.stderr.write(`Value of ${name} (not shown): `);
  // The terminal is in raw mode while the line is read, and its echo goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: io.stdin, output: nowhere, terminal: true, historySize: 0 });
  try {
    return await new Promise<string>((resolve, reject) => {
      terminal.once('close', () => reject(usageError('No value was entered.')));
      terminal.once('SIGINT', () => terminal.close());
      terminal.question('').then(resolve, reject);
    });
  } finally {
    terminal.close();
    io.stderr.write('\n');
  }
}
