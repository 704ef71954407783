import { hash } from 'node:crypto';
import { newId } from '../../../../kernel/ids.ts';
import type { InboxMessage } from '../../../unattended/inbox/api.ts';
import { refusedEffects } from '../../../../runtime/refused-effects.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { type GraphSpec, leavesOf } from '../definition/definition.ts';
import type { LiveNode } from '../nodes/live-node.ts';
import type { GraphRow, NodeRow } from '../rows.ts';

/** Maximum characters of the outputs in an announcement; longer ones are cut. */
const maxShown = 3000;
const nodeShown = 500;
/** Maximum characters of a gate's question, so that the inbox never cuts off how to answer it. */
export const maxAsked = 8000;

/** A graph that has ended. */
export interface EndedGraph {
  readonly row: Pick<GraphRow, 'id' | 'label' | 'agentId' | 'principalId' | 'cancelReason' | 'state'>;
  readonly nodes: readonly Pick<NodeRow, 'nodeId' | 'state' | 'output' | 'error' | 'cause' | 'partial' | 'effectsRefused'>[];
}

const titleOf = ({ id, label }: Pick<GraphRow, 'id' | 'label'>) => (label === null ? `Graph ${id}` : `Graph "${label}" (${id})`);

/** Returns the final outputs of a graph under their node names; when too long, their beginning and where the rest is. */
export function resultOf({ row, nodes }: EndedGraph, spec: GraphSpec): string {
  const leaves = new Set(leavesOf(spec.nodes).map(({ id }) => id));
  const text = nodes
    .filter(({ nodeId, output }) => leaves.has(nodeId) && output !== null)
    .map(({ nodeId, output, partial }) => `## ${nodeId}${partial === 1 ? ' (ended early, not complete)' : ''}\n${output ?? ''}`)
    .join('\n\n');
  return text.length <= maxShown
    ? text
    : `${headOf(text, maxShown)}\n\n[This is the beginning. graph.outputs and graph.runDetail of ${row.id} have the rest.]`;
}

/** Summarizes in one line how a graph ended. */
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

const reasons = { manual: 'on request', timeout: 'it timed out', budget: 'its budget was used up', killed: 'it was stopped' } as const;

/** Lists failures: identifiers and short errors, with their causes for owners. */
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

export interface EndNotice {
  readonly conversationRef: string | null;
  /** Whether the message may contain causes of failures. */
  readonly forOwner: boolean;
  /** Why the requesting conversation was not notified. */
  readonly undelivered?: string | undefined;
  readonly atMs: number;
}

/** Writes the single message about the end of a graph. */
export function endMessage(found: EndedGraph, spec: GraphSpec, { conversationRef, forOwner, undelivered, atMs }: EndNotice): InboxMessage {
  const { id, state } = found.row;
  const next = state === 'failed' ? `Next step: inspect it with \`gatehouse graph status ${id}\`, then start it again.` : '';
  const undeliveredNote =
    undelivered === undefined
      ? ''
      : `The requesting conversation could not be notified: ${undelivered}. Next step: send a message there to continue.`;
  const parts = [verdictOn(found), failuresOf(found, forOwner), resultOf(found, spec), next, undeliveredNote].filter((part) => part !== '');
  const level = state === 'completed' && undelivered === undefined ? 'info' : 'alert';
  return message(found.row, 'end', parts.join('\n\n'), { conversationRef, level, atMs });
}

/** Writes a message about one node, for graphs that announce each node. */
export function nodeMessage(row: About, node: LiveNode, conversationRef: string | null, atMs: number): InboxMessage {
  const said = node.output ?? node.error ?? '';
  const text = `${titleOf(row)}: node ${node.spec.id} ${node.state}.${said === '' ? '' : `\n\n${headOf(said, nodeShown)}`}`;
  return message(row, `node:${node.spec.id}`, text, { conversationRef, level: node.state === 'failed' ? 'alert' : 'info', atMs });
}

/** Writes the question of an approval gate; `question` is the message of its author, with everything filled in. */
export function questionMessage(
  row: About,
  node: LiveNode,
  kind: 'ask' | 'reminder',
  question: string,
  conversationRef: string | null,
  atMs: number,
  /** How people in a chat answer; elsewhere with `graph.answer`. */
  inChat?: string,
): InboxMessage {
  const until = node.deadlineMs === null ? '' : ` until ${new Date(node.deadlineMs).toISOString().slice(0, 16)} UTC`;
  const lead = kind === 'ask' ? 'asks for an approval' : 'is still waiting for an approval';
  const how =
    inChat ??
    `Answer with graph.answer {"graphId": "${row.id}", "nodeId": "${node.spec.id}", "answer": "yes"} or "no"${until}; without an answer the node fails.`;
  const asked =
    question.length <= maxAsked
      ? question
      : `${headOf(question, maxAsked)}\n\n[This is the beginning. graph.runDetail of ${row.id} has the results.]`;
  const text = `${titleOf(row)} ${lead} (node ${node.spec.id}):\n\n${asked}\n\n${how}`;
  return message(row, `${kind}:${node.spec.id}:${node.attempt}`, text, { conversationRef, level: 'alert', atMs });
}
