import type { ModelMessage, ToolCall } from '../llm/model.ts';

/** `warn`: the model should be warned; `loop`: it was warned and continues. */
export type LoopVerdict = 'progress' | 'warn' | 'loop';

/** Watches the steps of one turn; called after each step that called tools. */
export interface LoopDetector {
  observe(step: { readonly text: string; readonly calls: readonly ToolCall[]; readonly results: readonly ModelMessage[] }): LoopVerdict;
}

/** Repeated rounds after which the model is warned, and after which the turn ends. A round is one to three steps long. */
const warnAfter = 3;
const endAfter = 5;
const longestRound = 3;
/** Some models habitually repeat their text before different calls; this many consecutive repeats are a loop. */
const sameTextAfter = 8;

/** Detects repeated calls with the same arguments and results, also in rounds of two or three, and endlessly repeated text. */
export function createLoopDetector(): LoopDetector {
  /** Newest last; only as many as the longest pattern needs. */
  const steps: string[] = [];
  let lastText = '';
  let sameTexts = 0;

  function rounds(length: number): number {
    let equal = 0;
    for (let index = steps.length - 1; index >= length && steps[index] === steps[index - length]; index -= 1) equal += 1;
    return 1 + Math.floor(equal / length);
  }

  return {
    observe({ text, calls, results }) {
      steps.push(JSON.stringify([calls.map((call) => [call.name, call.arguments]), results.map((result) => result.content)]));
      if (steps.length > longestRound * endAfter) steps.shift();
      sameTexts = text !== '' && text === lastText ? sameTexts + 1 : 1;
      lastText = text;
      if (text !== '' && sameTexts >= sameTextAfter) return 'loop';
      let most = 0;
      for (let length = 1; length <= longestRound; length += 1) most = Math.max(most, rounds(length));
      if (most >= endAfter) return 'loop';
      return most >= warnAfter ? 'warn' : 'progress';
    },
  };
}
