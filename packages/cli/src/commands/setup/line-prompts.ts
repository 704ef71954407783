import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { type Io, printLine } from '../../io.ts';
import { interrupted, type Prompts } from './prompts.ts';

/** Questions one line after the other, without moving the cursor. */
export function createLinePrompts(io: Io): Prompts {
  const say = (text: string) => printLine(io.stderr, text);

  async function untilGood(message: string, read: (line: string) => { readonly value: string } | { readonly wrong: string }): Promise<string> {
    for (;;) {
      const outcome = read((await readLine(message, io)).trim());
      if ('value' in outcome) return outcome.value;
      say(outcome.wrong);
    }
  }

  return {
    select({ message, choices, initial = choices[0]?.value }) {
      say(message);
      choices.forEach(({ label, hint }, index) => say(`  ${index + 1}. ${label}${hint === undefined ? '' : ` (${hint})`}`));
      const preset = choices.findIndex(({ value }) => value === initial) + 1;
      return untilGood(`Number, or Enter for ${preset}: `, (line) => {
        const found = line === '' ? choices[preset - 1] : choices.find(({ value, label }, index) => [`${index + 1}`, value, label].includes(line));
        return found === undefined ? { wrong: `Expected a number from 1 to ${choices.length}.` } : { value: found.value };
      });
    },
    secret: (message) => readLine(`${message} (not shown): `, io, { hidden: true }),
    text({ message, initial = '', placeholder, check }) {
      const hint = initial !== '' ? ` (Enter for ${initial})` : placeholder === undefined ? '' : ` (${placeholder})`;
      return untilGood(`${message}${hint}: `, (line) => {
        const value = line === '' ? initial : line;
        const wrong = check?.(value);
        return wrong === undefined ? { value } : { wrong };
      });
    },
    note: say,
    success: say,
    failure: say,
  };
}

/** Reads a line; in raw mode, so that a hidden one appears nowhere and Ctrl-C ends the question alone. */
function readLine(question: string, io: Io, { hidden = false }: { readonly hidden?: boolean } = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  io.stderr.write(question);
  const terminal = createInterface({ input: io.stdin, output: nowhere, terminal: true, historySize: 0 });
  let typed = 0;
  // Echoes what is appended; an edited line is only shown once it is complete.
  const echo = (): void => {
    if (hidden || terminal.line.length <= typed) return void (typed = terminal.line.length);
    io.stderr.write(terminal.line.slice(typed));
    typed = terminal.line.length;
  };
  io.stdin.on('keypress', echo);
  terminal.once('line', (line) => {
    resolve(line);
    terminal.close();
  });
  terminal.once('SIGINT', () => terminal.close());
  terminal.once('close', () => {
    io.stdin.off('keypress', echo);
    io.stderr.write('\n');
    reject(interrupted());
  });
  return promise;
}
