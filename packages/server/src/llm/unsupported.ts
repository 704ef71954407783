import type { ModelInfo, ModelOptions } from './model.ts';
import type { ModelLimit, Vendor } from './vendors.ts';

/** What a caller requests from a model beyond plain text. */
export interface Asked {
  readonly options?: ModelOptions | undefined;
  /** The caller supplies its own tools. */
  readonly tools: boolean;
}

export interface Unsupported {
  /** Name of the option as in `ModelOptions`, or `tools`. */
  readonly option: keyof ModelOptions | 'tools';
  /** What is not supported and by whom; safe to show to a client. */
  readonly message: string;
}

interface Wish {
  readonly limit: ModelLimit;
  readonly option: Unsupported['option'];
  readonly label: string;
}

/** Returns the first option that the vendor does not support; values without effect (`topP` 1, penalties of 0, tool choice `auto`) don't count. */
export function findUnsupported(
  model: ModelInfo,
  { name, limits = [], topK }: Pick<Vendor, 'name' | 'limits' | 'topK'>,
  asked: Asked,
): Unsupported | undefined {
  const missed = wishesOf(asked).find(({ limit }) => (limit === 'topK' ? topK !== true : limits.includes(limit)));
  if (missed === undefined) return undefined;
  return { option: missed.option, message: `${name}, which serves the model ${model.provider}/${model.modelId}, does not offer ${missed.label}` };
}

function wishesOf({ options = {}, tools }: Asked): readonly Wish[] {
  const { responseFormat, toolChoice } = options;
  const wishes: (Wish | false)[] = [
    tools && { limit: 'tools', option: 'tools', label: 'tools' },
    changes(options.topP, 1) && plain('topP', 'a choice of top_p'),
    options.topK !== undefined && plain('topK', 'a choice of top_k'),
    options.stop !== undefined && options.stop.length > 0 && plain('stop', 'stop sequences'),
    options.seed !== undefined && plain('seed', 'a seed'),
    changes(options.presencePenalty, 0) && plain('presencePenalty', 'a presence penalty'),
    changes(options.frequencyPenalty, 0) && plain('frequencyPenalty', 'a frequency penalty'),
    responseFormat?.type === 'json_object' && { limit: 'jsonObject', option: 'responseFormat', label: 'answers of the form json_object' },
    responseFormat?.type === 'json_schema' && { limit: 'jsonSchema', option: 'responseFormat', label: 'answers of the form json_schema' },
    (toolChoice === 'required' || typeof toolChoice === 'object') && plain('toolChoice', 'a forced tool call'),
    tools && options.parallelToolCalls === false && plain('parallelToolCalls', 'one tool call at a time'),
    options.reasoningEffort !== undefined && plain('reasoningEffort', 'a choice of the reasoning effort'),
  ];
  return wishes.filter((wish) => wish !== false);
}

function plain(option: ModelLimit & keyof ModelOptions, label: string): Wish {
  return { limit: option, option, label };
}

function changes(value: number | undefined, neutral: number): boolean {
  return value !== undefined && value !== neutral;
}

/** Whether a caller may choose how long the model reasons: by levels on the one wire, by a budget of tokens on the other. */
export function hasEfforts(model: Pick<ModelInfo, 'reasoning'>, { wire, limits = [] }: Pick<Vendor, 'wire' | 'limits'>): boolean {
  return model.reasoning && (wire === 'anthropic-messages' || !limits.includes('reasoningEffort'));
}
