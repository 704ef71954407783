import * as z from 'zod';
import { countParts } from '../count-parts.ts';
import { countTokens } from '../count-tokens.ts';
import type { ModelRequest, ModelUsage, ToolCall } from '../model.ts';

/** More tokens than any call has; when a provider reports so many, or negative ones, they are counted here instead. */
const mostTokens = 100_000_000;

/** A token count as reported by a provider. */
export const ReportedTokens = z.number().min(0).max(mostTokens).transform(Math.round);

/** Every call has input: a report without any is invalid. */
export const ReportedInput = ReportedTokens.refine((tokens) => tokens > 0);

/** Estimates the tokens of a call whose provider reported none. */
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
