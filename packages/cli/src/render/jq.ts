import { Writable } from 'node:stream';
import { type Io, printLine } from '../io.ts';
import { exitCode } from '../exit-codes.ts';
import { CliError, usageError } from '../failure.ts';
import { printableText } from './plain.ts';

/** Sets the filter of what a command prints; fails for one that does not compile, before the command has done anything. */
export type FilterBy = (filter: string) => Promise<void>;

/** Prints what a filter of jq makes of the JSON values that a command prints. */
export interface JqOutput {
  /** What the command prints to instead of its standard output. */
  readonly stdout: Writable;
  readonly filterBy: FilterBy;
  /** Resolves when everything is printed; fails when the filter failed. */
  end(): Promise<void>;
}

/** Matches lines at which a JSON value may end: those of values over several lines end with a bracket at their beginning. */
const mayEnd = /^(?:[\]}]\s*|[^\s\]}].*)$/;

/** Creates an output that passes text on unchanged until a filter is set. */
export function createJqOutput(io: Pick<Io, 'stdout'>): JqOutput {
  let filter: string | undefined;
  /** Lines of a value that has not ended. */
  let open = '';
  let line = '';

  async function take(text: string): Promise<void> {
    if (filter === undefined) {
      io.stdout.write(text);
      return;
    }
    const lines = (line + text).split('\n');
    line = lines.pop() ?? '';
    for (const one of lines) {
      open += `${one}\n`;
      if (mayEnd.test(one) && isJson(open)) {
        await printFiltered(io.stdout, open, filter);
        open = '';
      }
    }
  }

  const stdout = new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      take(chunk.toString()).then(() => done(), done);
    },
  });
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  stdout.on('error', failure.reject);

  return {
    stdout,
    async filterBy(wanted) {
      // Never evaluated, only compiled.
      await runJq('null', `if false then (${wanted}\n) else empty end`).catch((error: unknown) => {
        throw usageError(`--jq: ${reasonOf(error)}`, 'The language of filters: https://jqlang.org/manual/');
      });
      filter = wanted;
    },
    async end() {
      const ended = new Promise<void>((resolve) => stdout.end(resolve));
      await Promise.race([ended, failure.promise]);
      const rest = open + line;
      if (filter === undefined || rest.trim() === '') return;
      if (!isJson(rest)) throw new CliError('--jq: the command printed no JSON.', { exitCode: exitCode.usage });
      await printFiltered(io.stdout, rest, filter);
    },
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function printFiltered(to: Writable, json: string, filter: string): Promise<void> {
  const text = await runJq(json, filter).catch((error: unknown) => {
    throw new CliError(`--jq: ${reasonOf(error)}`, { cause: error });
  });
  // Strings are printed as they are, so that they must not move the cursor of a terminal.
  if (text !== '') printLine(to, printableText(text));
}

/** The program is a megabyte of WebAssembly. */
async function runJq(json: string, filter: string): Promise<string> {
  const { default: jq } = await import('jq-wasm');
  return (await jq.raw(json, filter, ['-r', '-c'])).replace(/\n$/, '');
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/^(?:jq: )?error(?: \(at [^)]*\))?: /, '').split('\n')[0] ?? text;
}
