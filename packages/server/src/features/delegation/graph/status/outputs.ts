import type { SubagentsApi } from '../../subagents/api.ts';
import { type GraphRow, type NodeRow, specOf } from '../rows.ts';

/** Of the outputs of one graph that are answered whole; beyond it, those that the rows hold are. */
const maxCharacters = 8 * 1024 * 1024;
const extensions: Readonly<Record<string, string>> = { jsonl: 'jsonl', json: 'json', csv: 'csv', html: 'html' };

export interface WholeOutput {
  readonly text: string;
  /** As a file: named after the node. */
  readonly filename: string;
}

/**
 * The whole output of a node; its row has as much as graphs pass on. Where one run made it, that run's result is asked;
 * where several did (votes, debates), the row has all.
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

/** The outputs of a graph by node. */
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

/** Nodes whose output is what one run said. */
export function nodesOfOneRun(row: Pick<GraphRow, 'definitionJson'>): ReadonlySet<string> {
  return new Set(specOf(row).nodes.flatMap(({ id, work }) => (work === undefined || work.type === 'agent' ? [id] : [])));
}
