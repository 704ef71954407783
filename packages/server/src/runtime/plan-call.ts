import type { CountTokens, ModelInfo, ModelMessage, ToolSpec } from '../llm/model.ts';
import type { FitContext } from './context-window.ts';

export interface CallPlanInput {
  readonly models: readonly ModelInfo[];
  readonly system: readonly string[];
  readonly tools: readonly ToolSpec[];
  readonly messages: readonly ModelMessage[];
  /** Output tokens that were asked for. */
  readonly maxTokens: number | undefined;
  /** Tokens that the turn may still use. */
  readonly budgetLeft: number;
  /** How often a provider found the conversation too long although it was counted to fit. */
  readonly overflows: number;
}

export type CallPlan =
  | {
      readonly messages: readonly ModelMessage[];
      /** Those of the list into whose window the call fits; the primary always does. */
      readonly models: readonly ModelInfo[];
      /** Absent when the model may decide. */
      readonly maxTokens: number | undefined;
      readonly cappedByBudget: boolean;
    }
  | { readonly end: 'contextExhausted' | 'budgetExceeded' };

/** Of the window: counts are estimates, and chat templates add tokens of their own. */
const safety = 0.02;
/** Less than this is no answer. */
const leastOutputTokens = 16;
const rememberedTexts = 64;
/** Shorter ones are counted as fast as found, longer ones are not worth their memory. */
const rememberedLengths = { from: 100, to: 20_000 };

/** Decides before a model call whether it fits into window and budget: input is counted and output reserved, the rest is the caller's. */
export function createPlanCall(fitContext: FitContext, countTokens: CountTokens): (input: CallPlanInput) => CallPlan {
  /** System prompts and tools are few and long, and the same at each step of each turn. */
  const remembered = new Map<string, number>();
  const toolTokens = new WeakMap<ToolSpec, number>();

  function countText(text: string): number {
    if (text.length < rememberedLengths.from || text.length > rememberedLengths.to) return countTokens(text) + 2;
    let tokens = remembered.get(text);
    if (tokens === undefined) {
      tokens = countTokens(text) + 2;
      if (remembered.size >= rememberedTexts) remembered.clear();
      remembered.set(text, tokens);
    }
    return tokens;
  }

  function countTool(tool: ToolSpec): number {
    let tokens = toolTokens.get(tool);
    if (tokens === undefined) {
      tokens = countTokens(JSON.stringify(tool)) + 8;
      toolTokens.set(tool, tokens);
    }
    return tokens;
  }

  return ({ models, system, tools, messages, maxTokens, budgetLeft, overflows }) => {
    const [primary] = models;
    if (primary === undefined) throw new RangeError('a call needs a model');
    let fixedTokens = 0;
    for (const text of system) fixedTokens += countText(text);
    for (const tool of tools) fixedTokens += countTool(tool);
    // Half of the window at most: a model whose longest answer fills its window could be told nothing otherwise.
    const wanted = maxTokens ?? primary.maxTokens;
    const usable = Math.floor(primary.contextWindow * (1 - safety) * 0.75 ** overflows);
    const reserve = Math.min(wanted, Math.floor(usable / 2));
    const fitted = fitContext({ messages, fixedTokens, limit: usable - reserve });
    if (fitted === undefined) return { end: 'contextExhausted' };
    const room = usable - fitted.tokens;
    const affordable = budgetLeft - fitted.tokens;
    if (affordable < Math.min(leastOutputTokens, wanted)) return { end: 'budgetExceeded' };
    const allowed = Math.min(wanted, room, affordable);
    const sent = maxTokens === undefined && allowed === wanted ? undefined : allowed;
    return {
      messages: fitted.messages,
      models: models.filter((model) => model === primary || fitted.tokens + (sent ?? model.maxTokens) <= model.contextWindow * (1 - safety)),
      maxTokens: sent,
      cappedByBudget: affordable < Math.min(wanted, room),
    };
  };
}
