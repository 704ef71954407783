import type { GraphNodeType, graphTypeConfigs } from '@gatehouse/contract';

type ConfigOf<T extends GraphNodeType> = (typeof graphTypeConfigs)[T]['_zod']['input'];

/** How a field of `type_config` is filled in. Lists of agents hold at least two. */
export type TypeField =
  | { readonly kind: 'agent'; readonly label: string; readonly hint?: string; readonly optional?: true }
  | { readonly kind: 'agents'; readonly label: string; readonly hint?: string; readonly withSuffix?: true }
  | { readonly kind: 'number'; readonly label: string; readonly hint?: string; readonly max: number }
  | { readonly kind: 'line' | 'text'; readonly label: string; readonly hint?: string };

/** The fields of each type, by their names on the wire: the compiler asks for those that the contract has, and for no others. */
export const typeFields: { readonly [T in GraphNodeType]: { readonly [F in keyof Required<ConfigOf<T>>]: TypeField } } = {
  agent: {
    agent: { kind: 'agent', label: 'Agent' },
    model: { kind: 'line', label: 'Model', hint: 'Empty: that of the agent.' },
    max_steps: { kind: 'number', label: 'Steps at most', max: 1000 },
  },
  debate: {
    agents: { kind: 'agents', label: 'Speakers', hint: 'They speak in turn, each seeing what was said.' },
    rounds: { kind: 'number', label: 'Rounds', hint: '2 when empty.', max: 5 },
    synthesizer: { kind: 'agent', label: 'Synthesizer', hint: 'Makes the output of what was said.', optional: true },
  },
  vote: {
    voters: { kind: 'agents', label: 'Voters', hint: 'They answer beside each other, without seeing the others.' },
    prompt_suffix: { kind: 'text', label: 'Added to the task' },
    verdict_format: { kind: 'line', label: 'What each answer must look like' },
    min_voters: { kind: 'number', label: 'Voters that must answer', hint: 'All when empty.', max: 10 },
  },
  refine: { reviewers: { kind: 'agents', label: 'Reviewers', hint: 'The first does the task, each next one improves the text before it.' } },
  collaborate: {
    agents: { kind: 'agents', label: 'Agents' },
    rounds: { kind: 'number', label: 'Rounds', hint: '1 when empty.', max: 3 },
  },
  'map-reduce': {
    mappers: { kind: 'agents', label: 'Mappers', withSuffix: true },
    reducer: { kind: 'agent', label: 'Reducer' },
    reducer_prompt: { kind: 'text', label: 'Prompt of the reducer' },
  },
  'approval-gate': {
    message: { kind: 'text', label: 'Message', hint: 'What whoever started the graph is asked; the task when empty.' },
    timeout_minutes: { kind: 'number', label: 'Minutes until it fails', hint: '60 when empty.', max: 1440 },
  },
};

export const nodeTypes = Object.keys(typeFields) as GraphNodeType[];

export function fieldsOf(type: GraphNodeType): readonly (readonly [name: string, field: TypeField])[] {
  return Object.entries<TypeField>(typeFields[type]);
}
