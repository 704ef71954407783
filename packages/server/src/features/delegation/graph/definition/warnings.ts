import type { GraphWarning } from '@gatehouse/contract';
import type { GraphSpec, SpecNode } from './definition.ts';
import { namesIn } from '../nodes/template.ts';

type Found = Omit<GraphWarning, 'nodeId'>;

/** Warns about valid graphs that may not do what was intended. Without `variables` the available ones are not known yet. */
export function warningsOf({ nodes }: GraphSpec, variables: Readonly<Record<string, string>> | undefined): GraphWarning[] {
  return nodes.flatMap((node) =>
    [...nameWarnings(node, variables), ...positionWarnings(node, nodes), ...typeWarnings(node)].map((found) => ({ nodeId: node.id, ...found })),
  );
}

/** Returns the names of all variables used. */
export function variablesOf({ nodes }: GraphSpec): string[] {
  return [...new Set(nodes.flatMap((node) => textsOf(node).flatMap((text) => namesIn(text).variables)))];
}

/** Returns the texts of a node in which templates are filled. */
export function textsOf({ task, work }: SpecNode): readonly string[] {
  return work?.type === 'approval-gate' && work.config.message !== undefined ? [task, work.config.message] : [task];
}

function nameWarnings(node: SpecNode, variables: Readonly<Record<string, string>> | undefined): Found[] {
  const named = textsOf(node).map(namesIn);
  const nodes = new Set(named.flatMap((names) => names.nodes.filter((id) => !node.dependsOn.includes(id))));
  const missing = new Set(named.flatMap((names) => names.variables.filter((name) => variables !== undefined && !Object.hasOwn(variables, name))));
  return [
    ...[...nodes].map((id): Found => ({
      type: 'unresolved_template',
      message: `{{${id}.result}} refers to a node that this one does not depend on.`,
      fix: `Add "${id}" to depends_on, or remove the template.`,
    })),
    ...[...missing].map((name): Found => ({
      type: 'unresolved_variable',
      message: `\${${name}} has no value.`,
      fix: `Pass variables.${name} to graph.execute.`,
    })),
  ];
}

function positionWarnings({ id, dependsOn, barrier }: SpecNode, nodes: readonly SpecNode[]): Found[] {
  const found: Found[] = [];
  const behind = nodes.filter((other) => other.dependsOn.includes(id));
  if (nodes.length > 1 && dependsOn.length === 0 && behind.length === 0)
    found.push({
      type: 'orphan_node',
      message: 'The node has no dependencies and no dependents.',
      fix: 'Connect it with depends_on, or remove it.',
    });
  if (barrier !== 'all' && dependsOn.length < 2)
    found.push({
      type: 'barrier_mode_low_deps',
      message: `barrier_mode "${barrier}" has no effect with ${dependsOn.length === 0 ? 'no dependency' : 'one dependency'}.`,
      fix: 'Omit barrier_mode, or add dependencies.',
    });
  const dependent = behind.filter((other) => !other.dependsOn.some((from) => dependsOn.includes(from)));
  if (dependsOn.length >= 3 && dependent.length >= 2)
    found.push({
      type: 'information_bottleneck',
      message: `The results of ${dependsOn.length} nodes reach ${dependent.length} others only through this one.`,
      fix: 'Make dependent nodes also depend on the nodes whose results they need.',
    });
  return found;
}

function typeWarnings({ work, agentId, retries }: SpecNode): Found[] {
  if (work === undefined)
    return agentId === undefined
      ? [{ type: 'no_agent_id', message: 'The node names no agent, so the default agent runs it.', fix: 'Name its agent in agent.' }]
      : [];
  const found: Found[] = [];
  if (agentId !== undefined)
    found.push({
      type: 'typed_node_agentid_ignored',
      message: `A node of type "${work.type}" names its agents in type_config; "agent" is ignored.`,
      fix: 'Remove agent, or name it in type_config.',
    });
  if (retries > 0 && work.type === 'approval-gate')
    found.push({ type: 'typed_node_approval_retry', message: 'A gate asks only once; "retries" is ignored.', fix: 'Remove retries.' });
  else if (retries > 0 && work.type !== 'agent')
    found.push({
      type: 'typed_node_expensive_retry',
      message: `A retry of "${work.type}" runs all its agents again.`,
      fix: 'Set retries to 0, or split the node.',
    });
  return found;
}
