import type { CountTokens, ModelInfo, ModelMessage, ToolSpec } from '../llm/model.ts';
import type { ContextOverflow, FitContext, FittedContext } from './context-window.ts';
import { countMessage } from './message-tokens.ts';
import { type BudgetRefusal, type Refused, refusal, type Reservation, type TurnBudget } from './turn-budget.ts';
import { toolSpec } from './tool-spec.ts';
import type { Tool } from './tool.ts';

const rememberedTexts = 64;
/** Shorter texts are counted as fast as looked up, longer ones are not worth their memory. */
const rememberedLengths = { from: 100, to: 20_000 };

export type CountFixed = (system: readonly string[], tools: readonly ToolSpec[]) => number;

/**
 * Counts what is sent with every call and never cut. System prompts and tools are few, long and the same at each step of each turn, so counts
 * are cached.
 */
export function createCountFixed(countTokens: CountTokens): CountFixed {
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

  return (system, tools) => {
    let tokens = 0;
    for (const text of system) tokens += countText(text);
    for (const tool of tools) tokens += countTool(tool);
    return tokens;
  };
}

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

export interface CallPlanInput {
  readonly models: readonly ModelInfo[];
  readonly system: readonly string[];
  readonly tools: readonly ToolSpec[];
  readonly messages: readonly ModelMessage[];
  /** Requested output tokens. */
  readonly maxTokens: number | undefined;
  /** The turn's own cap: its configuration key, its limit, and what the turn has used of it. */
  readonly turnTokens: { readonly cap: string; readonly limit: number; readonly used: number };
  /** Caps beyond those of the turn's tokens. */
  readonly budget: TurnBudget | undefined;
  /** See `TurnInput.whole`. */
  readonly whole: readonly ModelMessage[] | undefined;
  /** How often a provider found the conversation too long although it was counted to fit. */
  readonly overflows: number;
}

export type CallPlan =
  | {
      readonly messages: readonly ModelMessage[];
      readonly leftOut: number;
      /** Models of the list into whose window the call fits; the primary always does. */
      readonly models: readonly ModelInfo[];
      /** Absent when the model may decide. */
      readonly maxTokens: number | undefined;
      /** The budget that makes the longest answer shorter than requested. */
      readonly cappedBy: Refused | undefined;
      /** Tokens of what is sent: system prompt and tools, everything, and what is kept free for the answer. */
      readonly sizes: { readonly fixed: number; readonly input: number; readonly limit: number; readonly answer: number };
      /** Settle it when the call has ended. */
      readonly reservation: Reservation | undefined;
    }
  | { readonly overflow: { readonly limit: number; readonly fixed: number; readonly input: number; readonly answer: number } }
  | BudgetRefusal;

/** Fewer tokens are not a useful answer. */
const leastOutputTokens = 16;
/** Tokens that a conversation that cannot be shortened must leave for the answer. */
const leastAnswerTokens = 256;

/** Decides before a model call whether it fits into window and budgets: counts input and reserves output; the rest is up to the caller. */
export function createPlanCall(fitContext: FitContext, countTokens: CountTokens): (input: CallPlanInput) => CallPlan {
  const countFixed = createCountFixed(countTokens);

  return ({ models: candidates, system, tools, messages, maxTokens, turnTokens, budget, whole, overflows }) => {
    const [primary] = candidates;
    if (primary === undefined) throw new RangeError('a call needs a model');
    const fixedTokens = countFixed(system, tools);
    const wanted = maxTokens ?? primary.maxTokens;
    const usable = Math.floor(usableWindow(primary) * 0.75 ** overflows);
    const reserve = answerReserve(whole === undefined ? wanted : Math.min(wanted, leastAnswerTokens), usable);
    const fitted = fit({ messages, fixedTokens, limit: usable - reserve }, whole);
    if ('needed' in fitted) return { overflow: { limit: usable, fixed: fixedTokens, input: fitted.needed, answer: reserve } };
    const available = usable - fitted.tokens;
    const { cap, limit, used } = turnTokens;
    const affordable = limit - used - fitted.tokens;
    const least = Math.min(leastOutputTokens, wanted);
    if (affordable < least) return { refused: refusal({ cap, limit, used, unit: 'tokens' }) };
    const allowed = Math.min(wanted, available, affordable);
    const cappedBy = affordable < Math.min(wanted, available) ? refusal({ cap, limit, used, unit: 'tokens' }) : undefined;
    const sent = maxTokens === undefined && allowed === wanted ? undefined : allowed;
    const models = candidates.filter((model) => model === primary || fitted.tokens + (sent ?? model.maxTokens) <= usableWindow(model));
    const reservation = budget?.reserve({ models, inputTokens: fitted.tokens, maxOutputTokens: allowed });
    const { leftOut } = fitted;
    const sizes = { fixed: fixedTokens, input: fitted.tokens, limit: usable, answer: allowed };
    if (reservation === undefined) return { messages: fitted.messages, leftOut, models, maxTokens: sent, cappedBy, sizes, reservation };
    if ('refused' in reservation) return reservation;
    // Only the reserved output may be generated: the limit is sent even where the provider would have decided itself.
    return {
      messages: fitted.messages,
      leftOut,
      models,
      maxTokens: reservation.maxOutputTokens,
      cappedBy: reservation.cappedBy ?? cappedBy,
      sizes,
      reservation,
    };
  };

  /** Counts what the caller sends whole as fixed: in the caller's own version if only the text added in front makes it too long. */
  function fit(input: Parameters<FitContext>[0], whole: readonly ModelMessage[] | undefined): FittedContext | ContextOverflow {
    if (whole === undefined) return fitContext(input);
    const { messages, fixedTokens, limit } = input;
    const lead = messages.slice(0, whole.length);
    const added = messages.slice(whole.length);
    const over = (list: readonly ModelMessage[]) => list.reduce((sum, message) => sum + countMessage(message, countTokens), fixedTokens);
    const kept = over(lead) <= limit ? lead : whole;
    const fitted = fitContext({ messages: added, fixedTokens: over(kept), limit });
    return 'needed' in fitted ? fitted : { ...fitted, messages: added.length === 0 && kept === lead ? messages : [...kept, ...fitted.messages] };
  }
}
