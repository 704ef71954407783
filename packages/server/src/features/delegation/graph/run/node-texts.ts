import type { PartOfRoot } from '../../../../kernel/call-context.ts';
import { totalCost } from '../../../../llm/price.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { GraphSpec } from '../definition/definition.ts';
import { envelopeOf, filledTask, summarizedFor, type Upstream } from '../nodes/envelope.ts';
import type { LiveNode } from '../nodes/live-node.ts';
import type { SummarizeOutput } from '../nodes/summary.ts';
import { shownTask } from '../nodes/template.ts';
import { type GraphRow, requesterIn, variablesIn } from '../rows.ts';

interface NodeTextsDeps {
  readonly row: GraphRow;
  readonly spec: GraphSpec;
  readonly nodes: ReadonlyMap<string, LiveNode>;
  readonly fence: FenceText;
  /** The root run that the graph is a part of. */
  readonly part: PartOfRoot;
  /** Summarizes an output; undefined on failure. */
  readonly summarize: SummarizeOutput;
  /** Aborted when this process does not hold the graph any more. */
  readonly halted: AbortSignal;
  /** Aborted when the time of the graph is over. */
  readonly expired: AbortSignal;
}

/** Writes what the agents and people of a graph read: tasks with the results of earlier nodes, and questions of gates. */
export class NodeTexts {
  readonly #deps: NodeTextsDeps;
  readonly #variables: Readonly<Record<string, string>>;
  readonly #isTainted: boolean;
  readonly #summaries = new Map<string, Promise<string | undefined>>();

  constructor(deps: NodeTextsDeps) {
    this.#deps = deps;
    this.#variables = variablesIn(deps.row);
    this.#isTainted = requesterIn(deps.row)?.tainted === true;
  }

  /** Fences the text of one agent for another. */
  fenced(text: string, from: string, clean: boolean): string {
    return this.#deps.fence(text, { source: 'sub-agent', from, clean });
  }

  /** Returns text of the author; fenced if a tainted agent wrote it. */
  own(text: string): string {
    return this.#isTainted ? this.#deps.fence(text, { source: 'sub-agent', from: this.#deps.row.agentId }) : text;
  }

  /** Returns the complete input of the agents of a node. */
  taskOf(node: LiveNode): string | Promise<string> {
    const { spec } = node;
    const upstream = this.#upstream(node);
    const fence = (output: string, id: string) => this.fenced(output, id, this.#deps.nodes.get(id)?.tainted === false);
    const envelope = (known: ReadonlyMap<string, Upstream>) =>
      envelopeOf({ spec: this.#deps.spec, node: spec, variables: this.#variables, upstream: known, fence, own: (text) => this.own(text) });
    const summarized = summarizedFor({ node: spec, upstream });
    return summarized.length === 0 ? envelope(upstream) : this.#withSummaries(node, upstream, summarized).then(envelope);
  }

  /** Returns the task as lists show it: with its variables, cut, and without the results of other nodes. */
  shownTaskOf({ spec }: LiveNode): string {
    return shownTask(spec.task, this.#variables);
  }

  /** Returns the question of a gate. People read the text of agents unfenced: it does not instruct them. */
  questionOf(node: LiveNode): string {
    const { spec } = node;
    const text = spec.work?.type === 'approval-gate' ? (spec.work.config.message ?? spec.task) : spec.task;
    return filledTask({ node: spec, variables: this.#variables, upstream: this.#upstream(node), fence: (said) => said }, text);
  }

  #upstream(node: LiveNode): ReadonlyMap<string, Upstream> {
    const found = new Map<string, Upstream>();
    for (const id of node.spec.dependsOn) {
      const from = this.#deps.nodes.get(id);
      if (from === undefined) continue;
      const { state, output, partial } = from;
      found.set(id, { state: state === 'completed' || state === 'skipped' ? state : 'failed', output, partial });
    }
    return found;
  }

  /** Returns a summary that an earlier process made; undefined when there was none. */
  #storedSummary(id: string): Promise<string | undefined> | undefined {
    const stored = this.#deps.nodes.get(id)?.summary ?? null;
    return stored === null ? undefined : Promise.resolve(stored === '' ? undefined : stored);
  }

  /** Adds summaries to results; each is made once for all nodes that receive it, and costs the first of them. */
  async #withSummaries(node: LiveNode, upstream: ReadonlyMap<string, Upstream>, ids: readonly string[]): Promise<ReadonlyMap<string, Upstream>> {
    const { row, part, halted, expired, summarize } = this.#deps;
    const known = new Map(upstream);
    await Promise.all(
      ids.map(async (id) => {
        const from = upstream.get(id);
        if (from?.output === null || from?.output === undefined) return;
        const { agentId, principalId, id: graphId } = row;
        const about = {
          agentId,
          principalId,
          part: { ...part, node: { graphId, nodeId: node.spec.id } },
          summarizes: { graphId, nodeId: id },
          onCall: (call: CallRecord) => charge(node, call),
          signal: AbortSignal.any([halted, expired]),
        };
        const summary = this.#summaries.get(id) ?? this.#storedSummary(id) ?? summarize(from.output, about);
        this.#summaries.set(id, summary);
        known.set(id, { ...from, summary: await summary });
      }),
    );
    halted.throwIfAborted();
    return known;
  }
}

function charge(node: LiveNode, { usage, cost }: CallRecord): void {
  node.tokens += usage.input + usage.output;
  if (cost === null) node.unpriced = true;
  else node.costNano += totalCost(cost);
}
