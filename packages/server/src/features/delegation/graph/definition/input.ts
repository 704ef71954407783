import type { GraphWarning, Issue } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import { agentsOf, type GraphInput, type GraphSpec, readDefinition } from './definition.ts';
import type { StoredDefinition } from '../rows.ts';
import { warningsOf } from './warnings.ts';

export interface InputDeps {
  readonly agents: Pick<AgentsApi, 'usable' | 'find' | 'defaultId'>;
  readonly knowsModel: (name: string) => boolean;
  /** Throws when the call may not start this agent. */
  readonly assertCanStart: (agentId: string, call: CallContext) => void;
}

export interface CheckedGraph {
  readonly spec: GraphSpec;
  readonly warnings: GraphWarning[];
}

export function invalid(issues: readonly Issue[]): AppError {
  const [first] = issues;
  const message = issues.map(({ path, message: text }) => `${path}: ${text}`).join('; ');
  return new AppError('invalid_params', message, { issues, ...(first !== undefined && { param: first.path }) });
}

/** Checks that a graph is valid and that the caller may use its agents; throws an error that names each invalid field. */
export function checkGraph(
  input: GraphInput,
  variables: Readonly<Record<string, string>> | undefined,
  call: CallContext,
  deps: InputDeps,
): CheckedGraph {
  const read = readDefinition(input);
  if (!('spec' in read)) throw invalid(read.issues);
  const { spec } = read;
  const issues: Issue[] = [];
  for (const node of spec.nodes) {
    const index = input.nodes.findIndex(({ node_id: id }) => id === node.id);
    const models = [node.model, node.work?.type === 'agent' ? node.work.config.model : undefined];
    for (const model of models)
      if (model !== undefined && !deps.knowsModel(model))
        issues.push({ path: `nodes.${index}.model`, message: `no configured provider has a model "${model}"` });
    // A node without an agent is done by the calling agent or the default agent, which the caller must be allowed to use too.
    const unnamed = call.agentCaller?.agentId ?? input.defaultAgentId ?? deps.agents.defaultId;
    for (const agentId of new Set(agentsOf(node))) checkAgent(agentId ?? unnamed, index);
  }
  if (issues.length > 0) throw invalid(issues);
  const warnings = warningsOf(spec, variables);
  return { spec, warnings: input.defaultAgentId === undefined ? warnings : warnings.filter(({ type }) => type !== 'no_agent_id') };

  function checkAgent(agentId: string, index: number): void {
    const agent = deps.agents.find(agentId);
    // Foreign and unknown agents get the same answer.
    if (agent === undefined || call.identity.agents?.includes(agentId) === false)
      issues.push({ path: `nodes.${index}.agent`, message: `Agent not found: ${agentId}` });
    else deps.assertCanStart(agentId, call);
  }
}

/** Returns the stored definition, from which the same graph can be built. */
export function storedForm({ nodes, edges, label, on_failure, timeout_ms, budget, settings, defaultAgentId }: GraphInput): StoredDefinition {
  return {
    nodes: [...nodes],
    ...(edges !== undefined && { edges: [...edges] }),
    ...(label !== undefined && { label }),
    ...(defaultAgentId !== undefined && { defaultAgentId }),
    settings: {
      ...settings,
      ...(on_failure !== undefined && { on_failure }),
      ...(timeout_ms !== undefined && { timeout_ms }),
      ...(budget !== undefined && { budget }),
    },
  };
}
