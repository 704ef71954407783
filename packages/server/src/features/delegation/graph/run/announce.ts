import { hash } from 'node:crypto';
import { newId } from '../../../../kernel/ids.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import { refusedEffects } from '../../../../runtime/refused-effects.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { type GraphSpec, leavesOf } from '../definition/definition.ts';
import type { NodeNow } from '../nodes/live-node.ts';
import type { GraphRow, NodeRow } from '../rows.ts';

/** Characters of the outputs beyond which the end of a graph is told with a preview. */
const maxTold = 3000;
const nodeTold = 500;
/** Characters of a gate's question: of a longer one the inbox would cut off how to answer it. */
export const maxAsked = 8000;

/** A graph that has ended. */
export interface EndedGraph {
  readonly row: Pick<GraphRow, 'id' | 'label' | 'agentId' | 'principalId' | 'cancelReason' | 'state'>;
  readonly nodes: readonly Pick<NodeRow, 'nodeId' | 'state' | 'output' | 'error' | 'cause' | 'partial' | 'effectsRefused'>[];
}

const titleOf = ({ id, label }: Pick<GraphRow, 'id' | 'label'>) => (label === null ? `Graph ${id}` : `Graph "${label}" (${id})`);

/** The outputs that a graph is for, each under the name of its node; over the bound their beginnings, and where the rest is. */
export function resultOf({ row, nodes }: EndedGraph, spec: GraphSpec): string {
  const leaves = new Set(leavesOf(spec.nodes).map(({ id }) => id));
  const text = nodes
    .filter(({ nodeId, output }) => leaves.has(nodeId) && output !== null)
    .map(({ nodeId, output, partial }) => `## ${nodeId}${partial === 1 ? ' (ended early, not complete)' : ''}\n${output ?? ''}`)
    .join('\n\n');
  return text.length <= maxTold
    ? text
    : `${headOf(text, maxTold)}\n\n[This is the beginning. graph.outputs and graph.runDetail of ${row.id} have the rest.]`;
}

/** How a graph ended, in one line of its own words. */
export function verdictOn({ row, nodes }: EndedGraph): string {
  const count = (state: NodeRow['state']) => nodes.filter((node) => node.state === state).length;
  const parts = [`${count('completed')} of ${nodes.length} nodes completed`];
  if (count('failed') > 0) parts.push(`${count('failed')} failed`);
  if (count('skipped') > 0) parts.push(`${count('skipped')} skipped`);
  const refused = nodes.reduce((sum, { effectsRefused }) => sum + effectsRefused, 0);
  if (refused > 0) parts.push(refusedEffects(refused));
  const why = row.cancelReason === null ? '' : ` (${reasons[row.cancelReason]})`;
  return `${titleOf(row)} ${row.state === 'completed' ? 'has completed' : row.state === 'cancelled' ? 'was cancelled' : 'failed'}${why}: ${parts.join(', ')}.`;
}

const reasons = { manual: 'on demand', timeout: 'its time was over', budget: 'its budget was used up', killed: 'it was stopped' } as const;

/** What failed: identifiers and short errors, with their causes for owners. */
export function failuresOf({ nodes }: EndedGraph, forOwner = false): string {
  return nodes
    .flatMap(({ nodeId, state, error, cause }) =>
      state === 'failed' ? [`- ${nodeId}: ${error ?? 'failed'}${forOwner && cause !== null ? ` (${cause})` : ''}`] : [],
    )
    .join('\n');
}

type About = Pick<GraphRow, 'id' | 'label' | 'agentId' | 'principalId'>;

function message(
  { id, agentId, principalId }: About,
  key: string,
  text: string,
  more: Pick<InboxMessage, 'conversationRef' | 'level' | 'atMs'>,
): InboxMessage {
  return { id: newId('in'), opKey: `graph:${id}:${key}`, digest: hash('sha256', text), source: 'graph', agentId, principalId, text, ...more };
}

export interface EndTelling {
  readonly conversationRef: string | null;
  /** The message may hold causes of failures. */
  readonly forOwner: boolean;
  /** Why the conversation that asked for the graph was not told. */
  readonly undelivered?: string | undefined;
  readonly atMs: number;
}

/** The one message about the end of a graph. */
export function endMessage(found: EndedGraph, spec: GraphSpec, { conversationRef, forOwner, undelivered, atMs }: EndTelling): InboxMessage {
  const { id, state } = found.row;
  const next = state === 'failed' ? `Next step: look at it with \`gatehouse graph status ${id}\`, then start it again.` : '';
  const untold =
    undelivered === undefined ? '' : `The conversation that asked for it could not be told: ${undelivered}. Next step: write there to go on with it.`;
  const parts = [verdictOn(found), failuresOf(found, forOwner), resultOf(found, spec), next, untold].filter((part) => part !== '');
  const level = state === 'completed' && undelivered === undefined ? 'info' : 'alert';
  return message(found.row, 'end', parts.join('\n\n'), { conversationRef, level, atMs });
}

/** Of a graph that is told of node by node. */
export function nodeMessage(row: About, node: NodeNow, conversationRef: string | null, atMs: number): InboxMessage {
  const said = node.output ?? node.error ?? '';
  const text = `${titleOf(row)}: node ${node.spec.id} ${node.state}.${said === '' ? '' : `\n\n${headOf(said, nodeTold)}`}`;
  return message(row, `node:${node.spec.id}`, text, { conversationRef, level: node.state === 'failed' ? 'alert' : 'info', atMs });
}

/** What an approval gate asks; `words` is the message of its author, with everything filled in. */
export function questionMessage(
  row: About,
  node: NodeNow,
  kind: 'ask' | 'reminder',
  words: string,
  conversationRef: string | null,
  atMs: number,
): InboxMessage {
  const until = node.deadlineMs === null ? '' : ` until ${new Date(node.deadlineMs).toISOString().slice(0, 16)} UTC`;
  const lead = kind === 'ask' ? 'asks for an approval' : 'still waits for an approval';
  const how = `Answer with graph.answer {"graphId": "${row.id}", "nodeId": "${node.spec.id}", "answer": "yes"} or "no"${until}; without an answer the node fails.`;
  const asked =
    words.length <= maxAsked ? words : `${headOf(words, maxAsked)}\n\n[This is the beginning. graph.runDetail of ${row.id} has the results.]`;
  const text = `${titleOf(row)} ${lead} (node ${node.spec.id}):\n\n${asked}\n\n${how}`;
  return message(row, `${kind}:${node.spec.id}:${node.attempt}`, text, { conversationRef, level: 'alert', atMs });
}
