import type { ChatCompletionChunk, FinishReason, TokensUsed } from '@gatehouse/contract';

/** http-gateway.md §2.4: only the step limit is a length; the internal reason travels beside it when asked for. */
export function mapFinishReason(reason: FinishReason): 'stop' | 'length' {
  return reason === 'max_steps' ? 'length' : 'stop';
}

/** The data lines of one streamed completion. What they share is serialised once; a text chunk is put together from strings. */
export interface ChatChunks {
  readonly role: string;
  /** A content chunk is `beforeText`, the text as the inside of a JSON string literal, `afterText`. */
  readonly beforeText: string;
  readonly afterText: string;
  finish(reason: FinishReason, extended: boolean): string;
  usage(tokens: TokensUsed): string;
}

export function chunksOf(id: string, created: number, model: string): ChatChunks {
  const head = `{"id":"${id}","object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},"choices":[`;
  const choice = `data: ${head}{"index":0,"delta":`;
  const line = (rest: Pick<ChatCompletionChunk, 'choices' | 'usage' | 'gatehouse'>): string =>
    `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, ...rest } satisfies ChatCompletionChunk)}\n\n`;
  return {
    role: `${choice}{"role":"assistant"},"finish_reason":null}]}\n\n`,
    beforeText: `${choice}{"content":"`,
    afterText: `"},"finish_reason":null}]}\n\n`,
    finish: (reason, extended) =>
      line({ choices: [{ index: 0, delta: {}, finish_reason: mapFinishReason(reason) }], ...(extended && { gatehouse: { finish_reason: reason } }) }),
    usage: (tokens) => line({ choices: [], usage: { prompt_tokens: tokens.input, completion_tokens: tokens.output, total_tokens: tokens.total } }),
  };
}
