import type { GraphWarning } from '@gatehouse/contract';
import type { GraphSpec, SpecNode } from './definition.ts';
import { namesIn } from '../nodes/template.ts';

type Found = Omit<GraphWarning, 'nodeId'>;

/** What runs, but maybe not as it was meant. Without `variables` it is not known yet which there will be. */
export function warningsOf({ nodes }: GraphSpec, variables: Readonly<Record<string, string>> | undefined): GraphWarning[] {
  return nodes.flatMap((node) =>
    [...ofNames(node, variables), ...ofPlace(node, nodes), ...ofType(node)].map((found) => ({ nodeId: node.id, ...found })),
  );
}

/** Names of the variables that are used anywhere. */
export function variablesOf({ nodes }: GraphSpec): string[] {
  return [...new Set(nodes.flatMap((node) => textsOf(node).flatMap((text) => namesIn(text).variables)))];
}

/** The texts of a node in which templates are filled. */
export function textsOf({ task, work }: SpecNode): readonly string[] {
  return work?.type === 'approval-gate' && work.config.message !== undefined ? [task, work.config.message] : [task];
}

function ofNames(node: SpecNode, variables: Readonly<Record<string, string>> | undefined): Found[] {
  const named = textsOf(node).map(namesIn);
  const nodes = new Set(named.flatMap((names) => names.nodes.filter((id) => !node.dependsOn.includes(id))));
  const missing = new Set(named.flatMap((names) => names.variables.filter((name) => variables !== undefined && !Object.hasOwn(variables, name))));
  return [
    ...[...nodes].map((id): Found => ({
      type: 'unresolved_template',
      message: `{{${id}.result}} names a node that this one does not depend on.`,
      fix: `Add "${id}" to depends_on, or take the template out.`,
    })),
    ...[...missing].map((name): Found => ({
      type: 'unresolved_variable',
      message: `\${${name}} has no value.`,
      fix: `Give variables.${name} to graph.execute.`,
    })),
  ];
}

function ofPlace({ id, dependsOn, barrier }: SpecNode, nodes: readonly SpecNode[]): Found[] {
  const found: Found[] = [];
  const behind = nodes.filter((other) => other.dependsOn.includes(id));
  if (nodes.length > 1 && dependsOn.length === 0 && behind.length === 0)
    found.push({
      type: 'orphan_node',
      message: 'Nothing leads to this node, and nothing comes after it.',
      fix: 'Connect it by depends_on, or take it out.',
    });
  if (barrier !== 'all' && dependsOn.length < 2)
    found.push({
      type: 'barrier_mode_low_deps',
      message: `barrier_mode "${barrier}" makes no difference with ${dependsOn.length === 0 ? 'no dependency' : 'one dependency'}.`,
      fix: 'Leave barrier_mode out, or add dependencies.',
    });
  const cutOff = behind.filter((other) => !other.dependsOn.some((from) => dependsOn.includes(from)));
  if (dependsOn.length >= 3 && cutOff.length >= 2)
    found.push({
      type: 'information_bottleneck',
      message: `What ${dependsOn.length} nodes find reaches ${cutOff.length} others only through this one.`,
      fix: 'Let the nodes behind it depend on those whose results they need.',
    });
  return found;
}

function ofType({ work, agentId, retries }: SpecNode): Found[] {
  if (work === undefined)
    return agentId === undefined
      ? [{ type: 'no_agent_id', message: 'The node names no agent; the default agent does it.', fix: 'Name its agent in agent.' }]
      : [];
  const found: Found[] = [];
  if (agentId !== undefined)
    found.push({
      type: 'typed_node_agentid_ignored',
      message: `A node of type "${work.type}" has agents of its own; "agent" is ignored.`,
      fix: 'Take agent out, or name it in type_config.',
    });
  if (retries > 0 && work.type === 'approval-gate')
    found.push({ type: 'typed_node_approval_retry', message: 'A gate asks once; "retries" is ignored.', fix: 'Take retries out.' });
  else if (retries > 0 && work.type !== 'agent')
    found.push({
      type: 'typed_node_expensive_retry',
      message: `A further try of "${work.type}" runs all its agents again.`,
      fix: 'Set retries to 0, or split the node.',
    });
  return found;
}
