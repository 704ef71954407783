import type { ChatCompletionChunk, FinishReason, TokensUsed } from '@gatehouse/contract';
import type { TurnOutcome } from '../../features/conversations/turns/api.ts';
import type { ToolCall } from '../../llm/model.ts';

/** http-gateway.md §2.4: only the step limit maps to length; the internal reason is sent on request. Calls for the client take precedence. */
export function mapFinishReason({ finishReason, clientCalls }: Pick<TurnOutcome, 'finishReason' | 'clientCalls'>): 'stop' | 'length' | 'tool_calls' {
  if (clientCalls !== undefined) return 'tool_calls';
  return finishReason === 'max_steps' ? 'length' : 'stop';
}

export function wireCall({ id, name, arguments: text }: ToolCall) {
  return { id, type: 'function' as const, function: { name, arguments: text } };
}

/** The data lines of one streamed completion. Their common part is serialised once; a text chunk is joined from strings. */
export interface ChatChunks {
  readonly role: string;
  /** A content chunk is `beforeText`, the text as the inside of a JSON string literal, `afterText`. */
  readonly beforeText: string;
  readonly afterText: string;
  /** A call is sent whole, in a separate chunk. */
  call(index: number, call: ToolCall): string;
  finish(outcome: Pick<TurnOutcome, 'finishReason' | 'clientCalls'>, extended: boolean): string;
  usage(tokens: TokensUsed): string;
}

export function chunksOf(id: string, created: number, model: string): ChatChunks {
  const head = `{"id":"${id}","object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},"choices":[`;
  const choice = `data: ${head}{"index":0,"delta":`;
  const line = (rest: Pick<ChatCompletionChunk, 'choices' | 'usage' | 'gatehouse'>): string =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, ...rest } satisfies ChatCompletionChunk)}\n\n`;
  const gatehouse = (finishReason: FinishReason) => ({ gatehouse: { finish_reason: finishReason } });
  return {
    role: `${choice}{"role":"assistant"},"finish_reason":null}]}\n\n`,
    beforeText: `${choice}{"content":"`,
    afterText: `"},"finish_reason":null}]}\n\n`,
    call: (index, call) => line({ choices: [{ index: 0, delta: { tool_calls: [{ index, ...wireCall(call) }] }, finish_reason: null }] }),
    finish: (outcome, extended) =>
      line({ choices: [{ index: 0, delta: {}, finish_reason: mapFinishReason(outcome) }], ...(extended && gatehouse(outcome.finishReason)) }),
    usage: (tokens) => line({ choices: [], usage: { prompt_tokens: tokens.input, completion_tokens: tokens.output, total_tokens: tokens.total } }),
  };
}
