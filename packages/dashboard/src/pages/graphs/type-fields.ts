import type { GraphNodeType, graphTypeConfigs } from '@gatehouse/contract';

type ConfigOf<T extends GraphNodeType> = ReturnType<typeof graphTypeConfigs>[T]['_zod']['input'];

/** The input for a field of `type_config`. Lists of agents need at least two entries. */
export type TypeField =
  | { readonly kind: 'agent'; readonly label: string; readonly hint?: string; readonly optional?: true }
  | { readonly kind: 'agents'; readonly label: string; readonly hint?: string; readonly withSuffix?: true }
  | { readonly kind: 'number'; readonly label: string; readonly hint?: string; readonly max: number }
  | { readonly kind: 'line' | 'text'; readonly label: string; readonly hint?: string };

/** The fields of each type by wire name; the compiler requires exactly those of the contract. */
export const typeFields: { readonly [T in GraphNodeType]: { readonly [F in keyof Required<ConfigOf<T>>]: TypeField } } = {
  agent: {
    agent: { kind: 'agent', label: 'Agent' },
    model: { kind: 'line', label: 'Model', hint: "Default: the agent's model." },
    max_steps: { kind: 'number', label: 'Maximum steps', max: 1000 },
  },
  debate: {
    agents: { kind: 'agents', label: 'Speakers', hint: 'They speak in turn; each sees the earlier contributions.' },
    rounds: { kind: 'number', label: 'Rounds', hint: 'Default: 2.', max: 5 },
    synthesizer: { kind: 'agent', label: 'Synthesizer', hint: 'Turns the discussion into the output.', optional: true },
  },
  vote: {
    voters: { kind: 'agents', label: 'Voters', hint: "They answer in parallel, without seeing each other's answers." },
    prompt_suffix: { kind: 'text', label: 'Task suffix' },
    verdict_format: { kind: 'line', label: 'Answer format' },
    min_voters: { kind: 'number', label: 'Minimum voters', hint: 'Default: all.', max: 10 },
  },
  refine: { reviewers: { kind: 'agents', label: 'Reviewers', hint: 'The first does the task; each of the others improves the previous text.' } },
  collaborate: {
    agents: { kind: 'agents', label: 'Agents' },
    rounds: { kind: 'number', label: 'Rounds', hint: 'Default: 1.', max: 3 },
  },
  'map-reduce': {
    mappers: { kind: 'agents', label: 'Mappers', withSuffix: true },
    reducer: { kind: 'agent', label: 'Reducer' },
    reducer_prompt: { kind: 'text', label: 'Reducer prompt' },
  },
  'approval-gate': {
    message: { kind: 'text', label: 'Message', hint: 'Question for the user who started the graph. Default: the task.' },
    timeout_minutes: { kind: 'number', label: 'Timeout in minutes', hint: 'Default: 60.', max: 1440 },
  },
};

export const nodeTypes = Object.keys(typeFields) as GraphNodeType[];

export function fieldsOf(type: GraphNodeType): readonly (readonly [name: string, field: TypeField])[] {
  return Object.entries<TypeField>(typeFields[type]);
}
