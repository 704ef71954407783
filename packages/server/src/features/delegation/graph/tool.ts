import { contract, GraphEdge, GraphNode, graphDefinition, type Params, type ResultInput, once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Authored } from './definition/authored.ts';
import type { StartFacts } from './run/start/start.ts';
import type { Tool, ToolResult } from '../../../runtime/tool.ts';

const actions = ['define', 'execute', 'status', 'outputs', 'cancel', 'save', 'load', 'list', 'delete'] as const;
type Action = (typeof actions)[number];
type PipelineMethods = HandlersOf<`graph.${Action}`>;

/** Parameters as the model sees them; the method of an action parses the input. */
const ToolParams = once(() =>
  z.strictObject({
    action: z
      .enum(actions)
      .describe(
        'define: checks a graph and stores nothing. execute: starts one; its end is announced in this conversation. status, outputs, cancel: for a started graph. save, load, list, delete: for graphs saved under a name.',
      ),
    nodes: z.array(GraphNode()).optional().describe('define, execute, save.'),
    edges: z.array(GraphEdge()).optional(),
    label: z.string().optional(),
    on_failure: graphDefinition().on_failure,
    timeout_ms: graphDefinition().timeout_ms,
    budget: graphDefinition().budget,
    variables: z.record(z.string(), z.string()).optional().describe('execute: values for ${NAME} in tasks.'),
    graphId: z.string().optional().describe('status, outputs, cancel: id or label of a run; execute: the id that load returned.'),
    id: z.string().optional().describe('load, delete, save: id of a saved graph, sg_….'),
  }),
);
const parameters = once(() => z.toJSONSchema(ToolParams(), { io: 'input' }));
const Args = once(() => z.looseObject({ action: z.enum(actions) }));

const methodOf = (action: Action) => `graph.${action}` as const;
/** Actions whose results contain text of agents. */
const readActions: ReadonlySet<Action> = new Set(['define', 'status', 'outputs', 'list']);
const fenced: ReadonlySet<Action> = new Set(['status', 'outputs', 'load', 'list']);

interface PipelineDeps {
  readonly methods: PipelineMethods;
  readonly execute: (params: Params<'graph.execute'>, call: CallContext, facts: StartFacts) => Promise<ResultInput<'graph.execute'>>;
  readonly authored: Authored;
  /** Returns whether a run of this graph had read text from outside. */
  readonly isTainted: (graphId: string) => Promise<boolean>;
}

/** `pipeline`: lets an agent write, run and inspect graphs of agents, with the authority of its principal. */
export function createPipelineTool({ methods, execute, authored, isTainted }: PipelineDeps): Tool<ReturnType<typeof Args>> {
  return {
    name: 'pipeline',
    description:
      'Runs several agents as a graph: nodes with tasks that depend on one another, debates, votes, refinement, map-reduce, approval gates. Results of a node are passed to the nodes that depend on it, or filled in where a task says {{node.result}}.',
    get args() {
      return Args();
    },
    get parameters() {
      return parameters();
    },
    // Starting a graph has no effect on its own: the calls of its agents pass the same gate, with the taint of the task.
    risk: 'outward',
    destination: () => ({ kind: 'configured' }),
    effect: 'idempotent',
    timeoutMs: 30_000,
    onlyReads: ({ action }) => readActions.has(action),
    describe: ({ action }) => `graphs: ${action}`,
    async run({ action, ...params }, { agentId, call, callId, tainted, turnId }) {
      try {
        const result = await act(action, params);
        const shown = Shown().safeParse(result);
        return {
          content: JSON.stringify(result, null, 1),
          ...((fenced.has(action) || params['graphId'] !== undefined) && {
            outside: { source: 'sub-agent', clean: action !== 'execute' && shown.success && !(await isTainted(shown.data.graphId)) },
          }),
        };
      } catch (error) {
        if (error instanceof AppError) return refused(error);
        throw error;
      }

      function act(name: Action, given: Readonly<Record<string, unknown>>): Promise<unknown> {
        const key = { tainted: tainted(), operationKey: `${turnId}:${callId}` };
        if (name === 'define')
          return authored(name, given['nodes'], agentId, async () => methods['graph.define'](parse('graph.define', given), call));
        if (name === 'execute') return authored(name, given['nodes'], agentId, async () => execute(parse('graph.execute', given), call, key));
        return perform(methods, methodOf(name), given, call);
      }
    },
  };
}

/** A single graph, whose record says whether it is tainted. Lists and saved graphs may contain text of anyone. */
const Shown = once(() => z.object({ graphId: z.string() }));

const refused = ({ message }: AppError): ToolResult => ({ content: message, isError: true });

async function perform<M extends keyof PipelineMethods>(methods: PipelineMethods, name: M, params: object, call: CallContext): Promise<unknown> {
  // The table pairs each name with the parameters of the same declaration.
  const handler = methods[name] as (given: unknown, by: CallContext) => Promise<unknown>;
  return handler(parse(name, params), call);
}

function parse<M extends keyof PipelineMethods>(name: M, params: object): Params<M> {
  const parsed = contract[name].params.safeParse(params);
  if (parsed.success) return parsed.data as Params<M>;
  throw new AppError('invalid_params', parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '));
}
