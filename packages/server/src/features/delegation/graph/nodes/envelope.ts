import { headOf } from '../../../../kernel/cut-text.ts';
import { nodeResultToolName } from '../../../../runtime/tool-policy.ts';
import { type GraphSpec, leavesOf, type SpecNode } from '../definition/definition.ts';
import { summaryCharacters } from './summary.ts';
import { fillTemplate } from './template.ts';
import { textsOf } from '../definition/warnings.ts';
import { namesIn } from './template.ts';

/** The state of a node that another one depends on. */
export interface Upstream {
  readonly state: 'completed' | 'failed' | 'skipped';
  readonly output: string | null;
  readonly partial: boolean;
  /** Made by a model; the beginning of the output is used without it. */
  readonly summary?: string | undefined;
}

export interface EnvelopeInput {
  readonly spec: GraphSpec;
  readonly node: SpecNode;
  readonly variables: Readonly<Record<string, string>>;
  readonly upstream: ReadonlyMap<string, Upstream>;
  /** Fences the output of one node for another. */
  readonly fence: (text: string, nodeId: string) => string;
  /** Prepares text of the author for agents: fenced when an agent wrote it. */
  readonly own: (text: string) => string;
}

const goalCharacters = 300;

/** Writes the complete input of the agents of a node: their position, the previous results, and the task itself. */
export function envelopeOf(input: EnvelopeInput): string {
  const { spec, node, own } = input;
  const isAlone = spec.nodes.length === 1;
  const parts = isAlone ? [] : [shapeOf(spec, node), `Overall goal:\n${own(goalOf(spec))}`];
  return [...parts, noticeOf(input), ...resultsOf(input), `${isAlone ? '' : 'Your task:\n'}${own(filledTask(input))}`]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** Returns the task with results and variables filled in. */
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
  return `You work on one of ${nodes.length} parts of a larger task. Other agents work on the other parts; your answer is passed on to the parts that depend on yours.\n${lines.join('\n')}`;
}

/** Writes a notice about missing or incomplete results, so that no agent takes them for complete. */
function noticeOf({ node, upstream }: EnvelopeInput): string {
  const lacking = node.dependsOn.flatMap((id) => {
    const from = upstream.get(id);
    if (from?.state !== 'completed') return [`- ${id} ${from?.state === 'skipped' ? 'was skipped' : 'failed'}; no result is available.`];
    return from.partial ? [`- ${id} was stopped early; its result is not complete.`] : [];
  });
  return lacking.length === 0 ? '' : `Some results that your task builds on are missing or incomplete:\n${lacking.join('\n')}`;
}

/** Returns completed nodes whose results the task does not contain already. */
function includedNodes({ node, upstream }: Pick<EnvelopeInput, 'node' | 'upstream'>): string[] {
  const inTask = new Set(textsOf(node).flatMap((text) => namesIn(text).nodes));
  return node.dependsOn.filter((id) => !inTask.has(id) && upstream.get(id)?.state === 'completed');
}

/** Returns the nodes whose results must be summarized for a node. */
export function summarizedFor(input: Pick<EnvelopeInput, 'node' | 'upstream'>): string[] {
  if (input.node.contextMode !== 'summary') return [];
  return includedNodes(input).filter((id) => (input.upstream.get(id)?.output?.length ?? 0) > summaryCharacters);
}

function resultsOf(input: EnvelopeInput): string[] {
  const { node, upstream, fence } = input;
  if (node.contextMode === 'none') return [];
  const included = includedNodes(input);
  if (node.contextMode === 'refs') {
    const lines = included.map((id) => `- ${nodeResultToolName} ${JSON.stringify({ node: id })}`);
    return included.length === 0 ? [] : [`Results that your task builds on are not shown here. Read those that you need:\n${lines.join('\n')}`];
  }
  return included.map((id) => {
    const { output, summary } = upstream.get(id) ?? {};
    const text = output ?? '';
    if (node.contextMode === 'full' || text.length <= summaryCharacters) return `Result of ${id}:\n${fence(text, id)}`;
    if (summary !== undefined) return `Summary of the result of ${id}:\n${fence(summary, id)}`;
    return `Beginning of the result of ${id}:\n${fence(headOf(text, summaryCharacters), id)}`;
  });
}
