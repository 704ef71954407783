import type { Result } from '@gatehouse/contract';
import { drawGraph } from '../render/graph-drawing.ts';
import { causeNote, withNotes, withRefusals } from '../render/notes.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderColumns, renderTable, renderTime } from '../render/table.ts';
import type { GraphDefinition } from './graph-file.ts';
import { costText, span } from './runs-text.ts';

type StatusResult = Result<'graph.status'>;
export type GraphView = Extract<StatusResult, { executionOrder: unknown }>;
type GraphList = Exclude<StatusResult, GraphView>;
type NodeView = GraphView['nodes'][string];
type Warnings = Result<'graph.define'>['warnings'];

const nameLength = 24;
const outputLength = 60;
const marks: Readonly<Record<NodeView['status'], string>> = { pending: '·', running: '●', completed: '✓', failed: '✗', skipped: '-' };

export function definedText({ nodeCount, executionOrder, userVariables, warnings }: Result<'graph.define'>): string {
  return [
    `Ready to run: ${nodeCount} nodes, ${executionOrder.join(', ')}.`,
    ...(userVariables.length === 0 ? [] : [`Variables: ${userVariables.map(plainText).join(', ')}`]),
    ...warningLines(warnings),
  ].join('\n');
}

export function warningLines(warnings: Warnings): string[] {
  return warnings.map(
    ({ nodeId, message, fix }) => `warning: ${nodeId === undefined ? '' : `node ${nodeId}: `}${plainText(message)} ${plainText(fix)}`,
  );
}

export function viewText(view: GraphView, nowMs: number, width?: number): string {
  const { graphId, label, status, cancelReason, startedAt, completedAt, rootRunId, stats, executionOrder, nodes } = view;
  const facts = renderColumns([
    ['graph', graphId],
    ['label', label],
    ['state', cancelReason === undefined ? runState(view) : `${status}, ${cancelReason}`],
    ['took', startedAt === undefined ? undefined : span((completedAt ?? nowMs) - startedAt)],
    ['nodes', `${stats.completed} of ${stats.total} completed, ${stats.running} running, ${stats.failed} failed, ${stats.skipped} skipped`],
    ['tokens', stats.tokens],
    ['cost', costText(stats.cost)],
    ['run', rootRunId],
  ]);
  const rows = executionOrder.flatMap((id) => {
    const node = nodes[id];
    return node === undefined ? [] : [{ cells: nodeRow(id, node, nowMs), note: causeNote(node) }];
  });
  const nodeTable = renderTable(
    ['Node', 'Type', 'State', 'Took', 'Try', 'Says'],
    rows.map(({ cells }) => cells),
  );
  const table = withNotes(
    nodeTable,
    rows.map(({ note }) => note),
    width,
  );
  return [facts, '', table, ...executionOrder.flatMap((id) => questionLines(graphId, id, nodes[id]))].join('\n');
}

/** Returns the question of a gate and how to answer it. */
function questionLines(graphId: string, id: string, node: NodeView | undefined): string[] {
  if (node?.waitsForAnswer !== true) return [];
  const asked = node.question === undefined ? [] : node.question.split('\n').map((line) => `  ${plainText(line)}`);
  return ['', `${id} asks:`, ...asked, `Answer with: gatehouse graph answer ${graphId} ${id} yes (or no)`];
}

function nodeRow(id: string, node: NodeView, nowMs: number) {
  const { type_id: type, startedAt, completedAt, attempt, error, progress, output } = node;
  const says = error ?? (node.waitsForAnswer === true ? node.question : (progress ?? output));
  return [
    id,
    type,
    stateText(node),
    startedAt === undefined ? undefined : span((completedAt ?? nowMs) - startedAt),
    attempt,
    says === undefined ? undefined : shorten(says, outputLength),
  ];
}

export const waitingForYou = 'waiting for you';

/** Returns the state of a run for a list. */
function runState({ status, waitsForAnswer }: { readonly status: string; readonly waitsForAnswer?: true | undefined }): string {
  return waitsForAnswer === true ? waitingForYou : status;
}

export function stateText({
  status,
  waitsForAnswer,
  partial,
  effectsRefused,
}: Pick<NodeView, 'status' | 'waitsForAnswer' | 'partial' | 'effectsRefused'>): string {
  if (waitsForAnswer === true) return waitingForYou;
  return withRefusals(partial === true ? `${status}, in part` : status, effectsRefused);
}

export function graphTable({ graphs, concurrency }: GraphList): string {
  const { globalActiveSubAgents: active, maxGlobalSubAgents: most, queueDepth } = concurrency;
  const slots = `${active} of ${most} sub-agent slots in use, ${queueDepth} queued.`;
  if (graphs.length === 0) return `No recent graph runs. ${slots}`;
  const rows = graphs.map(({ graphId, label, startedAt, completedAt, nodeCount, ...state }) => [
    label,
    runState(state),
    nodeCount,
    renderTime(startedAt),
    renderTime(completedAt),
    graphId,
  ]);
  return `${renderTable(['Label', 'State', 'Nodes', 'Started', 'Ended', 'Id'], rows)}\n${slots}`;
}

export function savedTable({ entries, total }: Result<'graph.list'>): string {
  if (entries.length === 0) return 'No saved graphs.';
  const rows = entries.map(({ label, nodeCount, agentId, updatedAt, id }) => [label, nodeCount, agentId, renderTime(updatedAt), id]);
  return withRest(renderTable(['Label', 'Nodes', 'Agent', 'Changed', 'Id'], rows), entries.length, total);
}

export function runsTable({ runs, total }: Result<'graph.runs'>, width?: number): string {
  if (runs.length === 0) return 'No runs.';
  const rows = runs.map(({ name, nodeCount, fileCount, date, graphId, ...state }) => [
    name,
    runState(state),
    nodeCount,
    fileCount,
    renderTime(Date.parse(date)),
    graphId,
  ]);
  const table = renderTable(['Name', 'State', 'Nodes', 'Outputs', 'Started', 'Id'], rows);
  return withRest(withNotes(table, runs.map(causeNote), width), runs.length, total);
}

function withRest(table: string, shown: number, total: number): string {
  return total > shown ? `${table}\nShowing ${shown} of ${total}.` : table;
}

/** Formats the outputs of nodes under their names; nodes without output are omitted. */
export function outputsText(outputs: Readonly<Record<string, string | null>>): string {
  const parts = Object.entries(outputs).flatMap(([id, text]) =>
    text === null ? [] : [[`${id}:`, ...text.split('\n').map((line) => `  ${plainText(line)}`)].join('\n')],
  );
  return parts.length === 0 ? 'No output yet.' : parts.join('\n\n');
}

/** Draws a run with the states of its nodes. */
export function drawView({ executionOrder, edges, nodes }: GraphView): string {
  return drawGraph(
    executionOrder.map((id) => {
      const node = nodes[id];
      const mark = node === undefined ? marks.pending : node.waitsForAnswer === true ? '?' : marks[node.status];
      return { id, text: `${mark} ${shorten(id, nameLength)}`, after: edges.flatMap(({ from, to }) => (to === id ? [from] : [])) };
    }),
  );
}

/** Draws a validated graph. */
export function drawDefinition({ nodes, edges = [] }: Pick<GraphDefinition, 'nodes' | 'edges'>): string {
  return drawGraph(
    nodes.map(({ node_id: id, depends_on: on = [] }) => ({
      id,
      text: shorten(id, nameLength),
      after: [...new Set([...on, ...edges.flatMap(({ from, to }) => (to === id ? [from] : []))])],
    })),
  );
}
