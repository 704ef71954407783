import * as z from 'zod';
import { countParts } from '../count-parts.ts';
import { countTokens } from '../count-tokens.ts';
import type { ModelRequest, ModelUsage, ToolCall } from '../model.ts';

/** More tokens than any call has; a provider that reports so many, or fewer than none, is not believed, and they are counted here. */
const mostTokens = 100_000_000;

/** A count of tokens in the words of a provider. */
export const ReportedTokens = z.number().min(0).max(mostTokens).transform(Math.round);

/** No call is made without input: a report of none is no report. */
export const ReportedInput = ReportedTokens.refine((tokens) => tokens > 0);

/** Tokens of a call whose provider reported none. */
export function estimateUsage(request: ModelRequest, text: string, toolCalls: readonly ToolCall[]): ModelUsage {
  return {
    input: estimateInput(request),
    output: countTokens(text) + toolCalls.reduce((sum, call) => sum + 8 + countTokens(call.name) + countTokens(call.arguments), 0),
    cacheRead: 0,
    cacheWrite: 0,
    estimated: true,
  };
}

function estimateInput(request: ModelRequest): number {
  let tokens = 3;
  for (const part of request.system) tokens += 4 + countTokens(part);
  for (const message of request.messages) {
    tokens += 4 + (message.role === 'user' && message.parts !== undefined ? countParts(message.parts) : countTokens(message.content));
    if (message.role === 'assistant') for (const call of message.toolCalls ?? []) tokens += 8 + countTokens(call.name) + countTokens(call.arguments);
  }
  for (const tool of request.tools)
    tokens += 8 + countTokens(tool.name) + countTokens(tool.description) + countTokens(JSON.stringify(tool.parameters));
  return tokens;
}
