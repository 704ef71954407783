import type { GraphNode, GraphNodeType, ParamsInput, Result } from '@gatehouse/contract';
import { DraftError } from '../../data/field-errors.ts';
import type { Arrow } from './layout.ts';
import { fieldsOf, type TypeField } from './type-fields.ts';

export type Definition = Pick<ParamsInput<'graph.define'>, 'nodes' | 'label' | 'settings'>;
type Saved = Pick<Result<'graph.load'>, 'label' | 'nodes' | 'edges' | 'settings'>;

export interface AgentEntry {
  readonly agent: string;
  readonly suffix: string;
}
export type ConfigValue = string | readonly AgentEntry[];

/** A node in the form: numbers as text, and a key that stays the same while the id is edited. */
export interface DraftNode {
  readonly key: string;
  readonly id: string;
  readonly task: string;
  /** Keys of other nodes. */
  readonly dependsOn: readonly string[];
  readonly type: '' | GraphNodeType;
  readonly config: Readonly<Record<string, ConfigValue>>;
  readonly agent: string;
  readonly model: string;
  readonly timeoutSeconds: string;
  readonly maxSteps: string;
  readonly retries: string;
  readonly barrier: '' | NonNullable<GraphNode['barrier_mode']>;
  readonly contextMode: '' | NonNullable<GraphNode['context_mode']>;
}

export interface GraphDraft {
  readonly label: string;
  readonly nodes: readonly DraftNode[];
  readonly onFailure: 'fail-fast' | 'continue';
  readonly timeoutSeconds: string;
  readonly maxTokens: string;
  readonly maxCost: string;
}

/** Maximum number of nodes in a graph. */
export const maxNodes = 20;

export const emptyGraph: GraphDraft = { label: '', nodes: [], onFailure: 'fail-fast', timeoutSeconds: '', maxTokens: '', maxCost: '' };

/** Adds a node with a free id after the selected one. */
export function withNode(draft: GraphDraft, agent: string, behind: string | undefined): { readonly draft: GraphDraft; readonly key: string } {
  const taken = new Set(draft.nodes.flatMap(({ id, key }) => [id, key]));
  let number = draft.nodes.length + 1;
  while (taken.has(`step-${number}`)) number += 1;
  const key = `step-${number}`;
  const node: DraftNode = {
    ...emptyNode(key),
    id: key,
    agent,
    dependsOn: behind === undefined ? [] : [behind],
  };
  return { draft: { ...draft, nodes: [...draft.nodes, node] }, key };
}

function emptyNode(key: string): DraftNode {
  const text = '';
  return {
    key,
    id: text,
    task: text,
    dependsOn: [],
    type: '',
    config: {},
    agent: text,
    model: text,
    timeoutSeconds: text,
    maxSteps: text,
    retries: text,
    barrier: '',
    contextMode: '',
  };
}

export function changeNode(draft: GraphDraft, key: string, part: Partial<DraftNode>): GraphDraft {
  return { ...draft, nodes: draft.nodes.map((node) => (node.key === key ? { ...node, ...part } : node)) };
}

export function withoutNode(draft: GraphDraft, key: string): GraphDraft {
  const left = draft.nodes.filter((node) => node.key !== key);
  return { ...draft, nodes: left.map((node) => ({ ...node, dependsOn: node.dependsOn.filter((one) => one !== key) })) };
}

export function withArrow(draft: GraphDraft, { from, to }: Arrow): GraphDraft {
  const node = draft.nodes.find(({ key }) => key === to);
  if (node === undefined || from === to || node.dependsOn.includes(from)) return draft;
  return changeNode(draft, to, { dependsOn: [...node.dependsOn, from] });
}

export function withoutArrow(draft: GraphDraft, { from, to }: Arrow): GraphDraft {
  const node = draft.nodes.find(({ key }) => key === to);
  return node === undefined ? draft : changeNode(draft, to, { dependsOn: node.dependsOn.filter((one) => one !== from) });
}

export function arrowsOf({ nodes }: GraphDraft): Arrow[] {
  return nodes.flatMap(({ key, dependsOn }) => dependsOn.map((from) => ({ from, to: key })));
}

/** Returns the definition to send; throws `DraftError` for a number field that is not a number. */
export function definitionOf(draft: GraphDraft): Definition {
  const { label, nodes, onFailure, timeoutSeconds, maxTokens, maxCost } = draft;
  const ids = new Map(nodes.map(({ key, id }) => [key, id]));
  const timeout = numberOf(timeoutSeconds, 'settings.timeout_ms');
  const budget = {
    ...given('maxTokens', numberOf(maxTokens, 'settings.budget.maxTokens')),
    ...given('maxCost', numberOf(maxCost, 'settings.budget.maxCost')),
  };
  return {
    ...(label.trim() !== '' && { label: label.trim() }),
    nodes: nodes.map((node, at) => nodeOf(node, `nodes.${at}`, ids)),
    settings: {
      on_failure: onFailure,
      ...(timeout !== undefined && { timeout_ms: Math.round(timeout * 1000) }),
      ...(Object.keys(budget).length > 0 && { budget }),
    },
  };
}

function nodeOf(node: DraftNode, path: string, ids: ReadonlyMap<string, string>): GraphNode {
  const { type, barrier, contextMode } = node;
  const timeout = numberOf(node.timeoutSeconds, `${path}.timeout_ms`);
  return {
    node_id: node.id.trim(),
    task: node.task,
    ...(node.dependsOn.length > 0 && { depends_on: node.dependsOn.map((key) => ids.get(key) ?? key) }),
    // Typed nodes configure their own agents; a leftover agent would only cause a warning.
    ...(type === '' && node.agent !== '' && { agent: node.agent }),
    ...(node.model.trim() !== '' && { model: node.model.trim() }),
    ...(timeout !== undefined && { timeout_ms: Math.round(timeout * 1000) }),
    ...given('max_steps', numberOf(node.maxSteps, `${path}.max_steps`)),
    ...given('retries', numberOf(node.retries, `${path}.retries`)),
    ...(barrier !== '' && { barrier_mode: barrier }),
    ...(contextMode !== '' && { context_mode: contextMode }),
    ...(type !== '' && { type_id: type, type_config: configOf(type, node.config, `${path}.type_config`) }),
  };
}

function configOf(type: GraphNodeType, config: DraftNode['config'], path: string): Record<string, unknown> {
  const values = fieldsOf(type).map(([name, field]) => [name, wireValue(field, config[name], `${path}.${name}`)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

function wireValue(field: TypeField, value: ConfigValue | undefined, path: string): unknown {
  if (field.kind === 'agents') {
    const entries = typeof value === 'object' ? value.filter(({ agent }) => agent !== '') : [];
    if (field.withSuffix !== true) return entries.map(({ agent }) => agent);
    return entries.map(({ agent, suffix }) => ({ agent, ...(suffix.trim() !== '' && { task_suffix: suffix }) }));
  }
  const text = typeof value === 'string' ? value : '';
  if (field.kind === 'number') return numberOf(text, path);
  return text.trim() === '' ? undefined : text;
}

/** Converts a saved graph to a draft. Arrows and `depends_on` are equivalent and are merged. */
export function draftOf({ label, nodes, edges, settings }: Saved): GraphDraft {
  return {
    label,
    nodes: nodes.map((node) => ({
      ...emptyNode(node.node_id),
      id: node.node_id,
      task: node.task,
      dependsOn: [...new Set([...(node.depends_on ?? []), ...edges.flatMap(({ from, to }) => (to === node.node_id ? [from] : []))])],
      type: node.type_id ?? '',
      config: node.type_id === undefined ? {} : draftConfig(node.type_id, node.type_config ?? {}),
      agent: node.agent ?? '',
      model: node.model ?? '',
      timeoutSeconds: textOf(node.timeout_ms, 1000),
      maxSteps: textOf(node.max_steps),
      retries: textOf(node.retries),
      barrier: node.barrier_mode ?? '',
      contextMode: node.context_mode ?? '',
    })),
    onFailure: settings.on_failure ?? 'fail-fast',
    timeoutSeconds: textOf(settings.timeout_ms, 1000),
    maxTokens: textOf(settings.budget?.maxTokens),
    maxCost: textOf(settings.budget?.maxCost),
  };
}

function draftConfig(type: GraphNodeType, config: Readonly<Record<string, unknown>>): DraftNode['config'] {
  return Object.fromEntries(
    fieldsOf(type).flatMap(([name, { kind }]): (readonly [string, ConfigValue])[] => {
      const value = config[name];
      if (value === undefined) return [];
      return kind === 'agents' ? [[name, Array.isArray(value) ? value.map(entryOf) : []]] : [[name, String(value)]];
    }),
  );
}

function entryOf(value: unknown): AgentEntry {
  if (typeof value !== 'object' || value === null) return { agent: String(value), suffix: '' };
  const { agent, task_suffix: suffix } = value as { readonly agent?: unknown; readonly task_suffix?: unknown };
  return { agent: String(agent ?? ''), suffix: String(suffix ?? '') };
}

function textOf(value: number | undefined, unit = 1): string {
  return value === undefined ? '' : String(value / unit);
}

function numberOf(text: string, path: string): number | undefined {
  if (text.trim() === '') return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) throw new DraftError(path, 'Expected a number.');
  return value;
}

function given<K extends string>(name: K, value: number | undefined): { readonly [P in K]?: number } {
  return value === undefined ? {} : ({ [name]: value } as { readonly [P in K]: number });
}
