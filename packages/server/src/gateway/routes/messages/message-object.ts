import type { AnswerBlock, MessageObject } from '@gatehouse/contract';
import type { TurnOutcome } from '../../../features/conversations/turns/api.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { ToolCall } from '../../../llm/model.ts';

/** Returns the message at the start of the turn. */
export function openMessage(id: string, model: string): MessageObject {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
  };
}

/** Returns the complete message of a turn. */
export function closedMessage(open: MessageObject, outcome: TurnOutcome): MessageObject {
  const { text, thinking = [], clientCalls = [] } = outcome;
  const texts: AnswerBlock[] = text === '' ? [] : [{ type: 'text', text, citations: null }];
  return { ...open, content: [...thinking, ...texts, ...clientCalls.map(callBlock)], ...stopOf(outcome), usage: usageOf(outcome) };
}

/** Tool results refer to this id; the arguments are an object, whatever the model wrote. */
export function callBlock({ id, name, arguments: text }: ToolCall): Extract<AnswerBlock, { type: 'tool_use' }> {
  return { type: 'tool_use', id, name, input: inputOf(text) };
}

function inputOf(text: string): Record<string, unknown> {
  try {
    const value = parseJson(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : { value };
  } catch {
    return { malformed: text };
  }
}

/** The provider's length limit counts as `max_steps` in the turn (decisions §3). */
export function stopOf({ finishReason, clientCalls, ending }: TurnOutcome): {
  stop_reason: NonNullable<MessageObject['stop_reason']>;
  stop_sequence: string | null;
} {
  if (clientCalls !== undefined) return { stop_reason: 'tool_use', stop_sequence: null };
  if (ending?.by === 'content_filter') return { stop_reason: 'refusal', stop_sequence: null };
  if (finishReason === 'max_steps' || finishReason === 'output_starved' || finishReason === 'budget_exceeded')
    return { stop_reason: 'max_tokens', stop_sequence: null };
  if (finishReason === 'context_exhausted') return { stop_reason: 'model_context_window_exceeded', stop_sequence: null };
  if (ending?.by === 'stop_sequence') return { stop_reason: 'stop_sequence', stop_sequence: ending.sequence };
  return { stop_reason: 'end_turn', stop_sequence: null };
}

export function usageOf({ tokensUsed, cachedInput, cacheWrittenInput = 0 }: TurnOutcome): MessageObject['usage'] {
  return {
    input_tokens: Math.max(0, tokensUsed.input - cachedInput - cacheWrittenInput),
    cache_creation_input_tokens: cacheWrittenInput,
    cache_read_input_tokens: cachedInput,
    output_tokens: tokensUsed.output,
  };
}
