import type { CountTokens, ModelInfo } from '../llm/model.ts';
import { createCountFixed } from './fixed-tokens.ts';
import type { Tool } from './tool.ts';
import { toolSpec } from './tool-spec.ts';

/** Of the window: counts are estimates, and chat templates add tokens of their own. */
const safety = 0.02;

/** Tokens of a model's window that may be planned with. */
export const usableWindow = (model: Pick<ModelInfo, 'contextWindow'>) => model.contextWindow * (1 - safety);

/** What is kept free for the answer: half of the window at most, or a model whose longest answer fills its window could be told nothing. */
export const answerReserve = (wanted: number, usable: number) => Math.min(wanted, Math.floor(usable / 2));

/** What else a call of a turn takes. */
export interface RoomInput {
  readonly model: Pick<ModelInfo, 'contextWindow' | 'maxTokens'>;
  readonly maxTokens: number | undefined;
  readonly system: readonly string[];
  readonly tools: readonly Tool[];
}

/** Tokens that the messages of a call may have; below zero when system prompt and tools alone are too long. */
export function createMessageRoom(countTokens: CountTokens): (input: RoomInput) => number {
  const countFixed = createCountFixed(countTokens);
  return ({ model, maxTokens, system, tools }) => {
    const usable = Math.floor(usableWindow(model));
    return usable - answerReserve(maxTokens ?? model.maxTokens, usable) - countFixed(system, tools.map(toolSpec));
  };
}
