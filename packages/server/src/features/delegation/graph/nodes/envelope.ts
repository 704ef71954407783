import { headOf } from '../../../../kernel/cut-text.ts';
import { nodeResultToolName } from '../../../../runtime/tool-policy.ts';
import { type GraphSpec, leavesOf, type SpecNode } from '../definition/definition.ts';
import { summaryCharacters } from './summary.ts';
import { fillTemplate } from './template.ts';
import { textsOf } from '../definition/warnings.ts';
import { namesIn } from './template.ts';

/** What is known of a node that another one depends on. */
export interface Upstream {
  readonly state: 'completed' | 'failed' | 'skipped';
  readonly output: string | null;
  readonly partial: boolean;
  /** Made by a model; the beginning of the output stands in for it. */
  readonly summary?: string | undefined;
}

export interface EnvelopeInput {
  readonly spec: GraphSpec;
  readonly node: SpecNode;
  readonly variables: Readonly<Record<string, string>>;
  readonly upstream: ReadonlyMap<string, Upstream>;
  /** Makes what a node said fit to be read by another. */
  readonly fence: (text: string, nodeId: string) => string;
  /** What the author of the graph wrote, as agents are to read it: fenced when an agent wrote it. */
  readonly own: (text: string) => string;
}

const goalCharacters = 300;

/** Everything that the agents of a node are told: where they stand, what came before, and the task itself. */
export function envelopeOf(input: EnvelopeInput): string {
  const { spec, node, own } = input;
  const isAlone = spec.nodes.length === 1;
  const parts = isAlone ? [] : [shapeOf(spec, node), `Goal of the whole:\n${own(goalOf(spec))}`];
  return [...parts, noticeOf(input), ...resultsOf(input), `${isAlone ? '' : 'Your task:\n'}${own(filledTask(input))}`]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** The task with results and variables in it. */
export function filledTask({ node, variables, upstream, fence }: Omit<EnvelopeInput, 'spec' | 'own'>, text = node.task): string {
  return fillTemplate(text, {
    variables,
    result(id) {
      const output = node.dependsOn.includes(id) ? upstream.get(id)?.output : undefined;
      return output === undefined || output === null ? undefined : `\n${fence(output, id)}\n`;
    },
  });
}

function goalOf({ label, nodes }: GraphSpec): string {
  return (
    label ??
    headOf(
      leavesOf(nodes)
        .map(({ task }) => task)
        .join('\n'),
      goalCharacters,
    )
  );
}

function shapeOf({ nodes }: GraphSpec, node: SpecNode): string {
  const lines = nodes.map(
    ({ id, dependsOn }) => `- ${id}${dependsOn.length === 0 ? '' : ` (after ${dependsOn.join(', ')})`}${id === node.id ? ': this is you' : ''}`,
  );
  return `You work on one of ${nodes.length} parts of a larger task. The others are done by other agents; what you answer is handed on to those that come after you.\n${lines.join('\n')}`;
}

/** Tells what is wrong with what came before, so that nobody takes it for whole. */
function noticeOf({ node, upstream }: EnvelopeInput): string {
  const lacking = node.dependsOn.flatMap((id) => {
    const from = upstream.get(id);
    if (from?.state !== 'completed') return [`- ${id} ${from?.state === 'skipped' ? 'was skipped' : 'failed'}; there is no result of it.`];
    return from.partial ? [`- ${id} was ended early; its result is not complete.`] : [];
  });
  return lacking.length === 0 ? '' : `Not everything that your task builds on is there:\n${lacking.join('\n')}`;
}

/** Completed nodes whose results the task does not hold already. */
function toldOf({ node, upstream }: Pick<EnvelopeInput, 'node' | 'upstream'>): string[] {
  const inTask = new Set(textsOf(node).flatMap((text) => namesIn(text).nodes));
  return node.dependsOn.filter((id) => !inTask.has(id) && upstream.get(id)?.state === 'completed');
}

/** Nodes whose results are to be summarized for a node. */
export function summarizedFor(input: Pick<EnvelopeInput, 'node' | 'upstream'>): string[] {
  if (input.node.contextMode !== 'summary') return [];
  return toldOf(input).filter((id) => (input.upstream.get(id)?.output?.length ?? 0) > summaryCharacters);
}

function resultsOf(input: EnvelopeInput): string[] {
  const { node, upstream, fence } = input;
  if (node.contextMode === 'none') return [];
  const told = toldOf(input);
  if (node.contextMode === 'refs') {
    const lines = told.map((id) => `- ${nodeResultToolName} ${JSON.stringify({ node: id })}`);
    return told.length === 0 ? [] : [`Results that your task builds on are not shown here. Read those that you need:\n${lines.join('\n')}`];
  }
  return told.map((id) => {
    const { output, summary } = upstream.get(id) ?? {};
    const text = output ?? '';
    if (node.contextMode === 'full' || text.length <= summaryCharacters) return `Result of ${id}:\n${fence(text, id)}`;
    if (summary !== undefined) return `Summary of the result of ${id}:\n${fence(summary, id)}`;
    return `Beginning of the result of ${id}:\n${fence(headOf(text, summaryCharacters), id)}`;
  });
}
