import { t } from '../../language.ts';
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
    agent: { kind: 'agent', label: t('Agent') },
    model: { kind: 'line', label: t('Model'), hint: t("Default: the agent's model.") },
    max_steps: { kind: 'number', label: t('Maximum steps'), max: 1000 },
  },
  debate: {
    agents: { kind: 'agents', label: t('Speakers'), hint: t('They speak in turn; each sees the earlier contributions.') },
    rounds: { kind: 'number', label: t('Rounds'), hint: t('Default: 2.'), max: 5 },
    synthesizer: { kind: 'agent', label: t('Synthesizer'), hint: t('Turns the discussion into the output.'), optional: true },
  },
  vote: {
    voters: { kind: 'agents', label: t('Voters'), hint: t("They answer in parallel, without seeing each other's answers.") },
    prompt_suffix: { kind: 'text', label: t('Task suffix') },
    verdict_format: { kind: 'line', label: t('Answer format') },
    min_voters: { kind: 'number', label: t('Minimum voters'), hint: t('Default: all.'), max: 10 },
  },
  refine: {
    reviewers: { kind: 'agents', label: t('Reviewers'), hint: t('The first does the task; each of the others improves the previous text.') },
  },
  collaborate: {
    agents: { kind: 'agents', label: t('Agents') },
    rounds: { kind: 'number', label: t('Rounds'), hint: t('Default: 1.'), max: 3 },
  },
  'map-reduce': {
    mappers: { kind: 'agents', label: t('Mappers'), withSuffix: true },
    reducer: { kind: 'agent', label: t('Reducer') },
    reducer_prompt: { kind: 'text', label: t('Reducer prompt') },
  },
  'approval-gate': {
    message: { kind: 'text', label: t('Message'), hint: t('Question for the user who started the graph. Default: the task.') },
    timeout_minutes: { kind: 'number', label: t('Timeout in minutes'), hint: t('Default: 60.'), max: 1440 },
  },
};

export const nodeTypes = Object.keys(typeFields) as GraphNodeType[];

export function fieldsOf(type: GraphNodeType): readonly (readonly [name: string, field: TypeField])[] {
  return Object.entries<TypeField>(typeFields[type]);
}
