import type { CountTokens, ToolSpec } from '../llm/model.ts';

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
