import type { CountTokens, ModelInfo } from '../llm/model.ts';
import { createCountFixed } from './fixed-tokens.ts';
import type { Tool } from './tool.ts';
import { toolSpec } from './tool-spec.ts';

/** Share of the window kept in reserve: counts are estimates, and chat templates add their own tokens. */
const safety = 0.02;

/** Tokens of a model's window that may be used for planning. */
export const usableWindow = (model: Pick<ModelInfo, 'contextWindow'>) => model.contextWindow * (1 - safety);

/** Tokens kept free for the answer: at most half of the window, or a model whose longest answer fills its window could get no input. */
export const answerReserve = (wanted: number, usable: number) => Math.min(wanted, Math.floor(usable / 2));

/** What else takes space in a call of a turn. */
export interface CapacityInput {
  readonly model: Pick<ModelInfo, 'contextWindow' | 'maxTokens'>;
  readonly maxTokens: number | undefined;
  readonly system: readonly string[];
  readonly tools: readonly Tool[];
}

/** Returns how many tokens the messages of a call may have; negative when system prompt and tools alone are too long. */
export function createMessageCapacity(countTokens: CountTokens): (input: CapacityInput) => number {
  const countFixed = createCountFixed(countTokens);
  return ({ model, maxTokens, system, tools }) => {
    const usable = Math.floor(usableWindow(model));
    return usable - answerReserve(maxTokens ?? model.maxTokens, usable) - countFixed(system, tools.map(toolSpec));
  };
}
