import { extname } from 'node:path';
import { GatehouseError } from '@gatehouse/client';
import type { ParamsInput } from '@gatehouse/contract';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { readLocalText } from './read-skill.ts';

export type GraphDefinition = ParamsInput<'graph.define'>;

const maxBytes = 1024 * 1024;

/** True when the argument means a file: it has a file extension or a folder. */
export function looksLikeFile(given: string): boolean {
  return /\.(ya?ml|json)$/i.test(given) || given.includes('/') || given.includes('\\');
}

/** Reads a graph in YAML or JSON; the gateway validates it. */
export async function readGraphFile(given: string, io: Io): Promise<GraphDefinition> {
  const text = await readLocalText(given, maxBytes, io);
  const value = extname(given).toLowerCase() === '.json' ? parseJson(text, given) : await parseYaml(text, given);
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !('nodes' in value))
    throw usageError(`${plainText(given)} does not contain a graph: expected nodes, each with node_id and task.`);
  return value as GraphDefinition;
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${plainText(file)} is not valid JSON: ${error instanceof Error ? plainText(error.message) : ''}`);
  }
}

async function parseYaml(text: string, file: string): Promise<unknown> {
  // Loaded only by the few commands that read YAML.
  const { parse } = await import('./yaml.ts');
  try {
    return parse(text, { maxAliasCount: 20 });
  } catch (error) {
    throw usageError(`${plainText(file)} is not valid YAML: ${error instanceof Error ? plainText(error.message.split('\n', 1)[0] ?? '') : ''}`);
  }
}

/** Rewrites validation errors of a graph to use node names instead of indexes. */
export function namedIssues(error: unknown, { nodes }: Pick<GraphDefinition, 'nodes'>): unknown {
  if (!(error instanceof GatehouseError) || error.issues.length === 0) return error;
  const lines = error.issues.map(({ path, message }) => {
    const [, at, inside = ''] = /^nodes\.(\d+)\.?(.*)$/.exec(path) ?? [];
    const id = at === undefined ? undefined : nodes[Number(at)]?.node_id;
    const place = typeof id === 'string' ? `node ${id}${inside === '' ? '' : `, ${inside}`}` : path;
    return `  ${plainText(place)}: ${plainText(message)}`;
  });
  return usageError(['The graph cannot run.', ...lines].join('\n'));
}
