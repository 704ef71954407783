import type { SubagentsApi } from '../../subagents/api.ts';
import { type GraphRow, type NodeRow, specOf } from '../rows.ts';

/** Maximum total of complete outputs of one graph; beyond it, the shorter ones in the rows are returned. */
const maxCharacters = 8 * 1024 * 1024;
const extensions: Readonly<Record<string, string>> = { jsonl: 'jsonl', json: 'json', csv: 'csv', html: 'html' };

export interface WholeOutput {
  readonly text: string;
  /** File name, derived from the node. */
  readonly filename: string;
}

/**
 * Returns the complete output of a node; its row has only as much as graphs pass on. When a single run made it, that run's result
 * is read; when several did (votes, debates), the row has everything.
 */
export async function wholeOutput(
  { nodeId, output, runId }: Pick<NodeRow, 'nodeId' | 'output' | 'runId'>,
  isOfOneRun: boolean,
  subagents: Pick<SubagentsApi, 'said'>,
): Promise<WholeOutput | undefined> {
  if (output === null) return undefined;
  const said = isOfOneRun && runId !== null ? await subagents.said(runId) : undefined;
  const text = said !== undefined && said.text.length > output.length ? said.text : output;
  return { text, filename: `${nodeId}.${extensions[said?.kind ?? ''] ?? 'txt'}` };
}

/** Returns the outputs of a graph by node. */
export async function wholeOutputs(
  row: Pick<GraphRow, 'definitionJson'>,
  nodes: readonly NodeRow[],
  subagents: Pick<SubagentsApi, 'said'>,
): Promise<ReadonlyMap<string, WholeOutput>> {
  const ofOneRun = nodesOfOneRun(row);
  const found = new Map<string, WholeOutput>();
  let characters = 0;
  for (const node of nodes) {
    const whole = await wholeOutput(node, ofOneRun.has(node.nodeId) && characters < maxCharacters, subagents);
    if (whole === undefined) continue;
    characters += whole.text.length;
    found.set(node.nodeId, whole);
  }
  return found;
}

/** Returns the nodes whose output is the result of a single run. */
export function nodesOfOneRun(row: Pick<GraphRow, 'definitionJson'>): ReadonlySet<string> {
  return new Set(specOf(row).nodes.flatMap(({ id, work }) => (work === undefined || work.type === 'agent' ? [id] : [])));
}
