import { countParts } from '../llm/count-parts.ts';
import type { CountTokens, ModelMessage } from '../llm/model.ts';

const perMessageTokens = 4;
const perCallTokens = 8;

/** Counts are cached for as long as the messages themselves, which never change. */
const counted = new WeakMap<ModelMessage, number>();

/** Counts the tokens of one message with its calls and parts, including the cost of a provider's framing. */
export function countMessage(message: ModelMessage, countTokens: CountTokens): number {
  const known = counted.get(message);
  if (known !== undefined) return known;
  let tokens = perMessageTokens + (message.role === 'user' && message.parts !== undefined ? countParts(message.parts) : countTokens(message.content));
  if (message.role === 'tool') tokens += countTokens(message.toolCallId);
  if (message.role === 'assistant')
    for (const call of message.toolCalls ?? []) tokens += perCallTokens + countTokens(call.id) + countTokens(call.name) + countTokens(call.arguments);
  if (message.role === 'assistant')
    for (const block of message.thinking ?? []) tokens += countTokens(block.type === 'thinking' ? block.thinking : block.data);
  counted.set(message, tokens);
  return tokens;
}

/** Saves the main thread a count that a storage thread has made. */
export function rememberTokens(message: ModelMessage, tokens: number): void {
  counted.set(message, tokens);
}
