import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { type GraphDefinition, namedIssues } from './graph-file.ts';
import { warningLines } from './graph-text.ts';
import type { OutputFlags } from './options.ts';

/** Prints what is suspicious about a graph to standard error; JSON output has it in its value. */
export function printWarnings(warnings: Result<'graph.define'>['warnings'], { output }: OutputFlags, io: Io): void {
  if (output === 'json') return;
  for (const line of warningLines(warnings)) printLine(io.stderr, line);
}

/** Reports errors of a graph by node names; JSON output has the original answer. */
export async function callByNames<T>(definition: GraphDefinition | undefined, flags: OutputFlags, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw definition === undefined || flags.output === 'json' ? error : namedIssues(error, definition);
  }
}

/** Returns the id of a saved graph, given as id or by its name. */
export async function findSavedId(client: Client, given: string): Promise<string> {
  if (given.startsWith('sg_')) return given;
  for (let offset = 0; ;) {
    const page = await client.call('graph.list', { limit: 200, offset });
    const found = page.entries.filter(({ label }) => label === given);
    if (found.length > 1)
      throw usageError(`${found.length} saved graphs are named ${plainText(given)}.`, `Use an id: ${found.map(({ id }) => id).join(', ')}`);
    if (found[0] !== undefined) return found[0].id;
    if (!page.hasMore)
      throw usageError(
        `No saved graph is named ${plainText(given)}.`,
        'A file ends in .yaml, .yml or .json; `gatehouse graph list` lists saved graphs.',
      );
    offset += page.entries.length;
  }
}

/** Loads a saved graph, which the gateway then also runs by its id. */
export async function loadSaved(client: Client, given: string) {
  return client.call('graph.load', { id: await findSavedId(client, given) });
}
