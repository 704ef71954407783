import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { CallFlags } from '../commands/call.ts';
import type { CommonFlags } from '../commands/options.ts';
import { print } from '../commands/print.ts';
import { connect } from '../connection/target.ts';
import { unreadable, usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import type { FilterBy } from '../render/jq.ts';
import { methodHelp, methodList } from './help.ts';
import { findMethod, loadMethods } from './method-shape.ts';
import { parseCall } from './parse-call.ts';

export interface CallLine {
  readonly name: string | undefined;
  /** The unparsed arguments after the method name. */
  readonly words: readonly string[];
  readonly flags: CallFlags;
}

/** Lists methods, shows the help of one, or calls it and prints the result as JSON. */
export async function runCall({ name, words, flags }: CallLine, io: Io, filterBy: FilterBy): Promise<void> {
  const document = loadMethods();
  if (flags.list === true) return print(io, flags, document.methods, () => methodList(document));
  if (name === undefined) throw usageError('Missing method.', '`gatehouse call --list` lists all methods.');
  const shape = findMethod(document, name);
  const { params, own, help } = await parseCall(words, shape, (source) => readJsonSource(source, io));
  if (help) return printLine(io.stdout, methodHelp(shape));
  if (own.jq !== undefined) await filterBy(own.jq);
  const format = outputOf(own.output ?? flags.output);
  const timeoutMs = timeoutOf(own.timeout);
  const { client } = await connect({ url: own.url ?? flags.url, tokenFile: own['token-file'] ?? flags.tokenFile, home: own.home ?? flags.home }, io);
  const result = await client.callByName(shape.method.name, params, { timeoutMs });
  printLine(io.stdout, JSON.stringify(result, null, format === 'json' ? 0 : 2));
}

async function readJsonSource(source: string, io: Io): Promise<string> {
  if (source === '-') return await text(io.stdin);
  if (!source.startsWith('@')) return source;
  const file = resolve(io.workingDir, source.slice(1));
  return await readFile(file, 'utf8').catch((error: Error) => {
    throw unreadable(file, error);
  });
}

function timeoutOf(seconds: string | undefined): number | undefined {
  if (seconds === undefined) return undefined;
  const value = Number(seconds);
  if (!(value > 0)) throw usageError('--timeout: expected a number of seconds greater than 0.');
  return value * 1000;
}

function outputOf(format: string): CommonFlags['output'] {
  if (format !== 'human' && format !== 'json') throw usageError('--output: expected human or json.');
  return format;
}
