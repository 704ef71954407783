import { type Io, printLine } from '../io.ts';
import type { OutputFlags } from './options.ts';

/** Prints a result: as one JSON value with `--output json`, otherwise as the text that `render` returns for it. */
export function print<T>(io: Io, { output }: OutputFlags, value: T, render: (value: T) => string): void {
  printLine(io.stdout, output === 'json' ? JSON.stringify(value) : render(value));
}
