import { AppError } from '../../kernel/app-error.ts';

/** Maps the turn's names of request fields to the route's. */
type WireNames = Readonly<Record<string, string>>;

export const chatNames: WireNames = {
  topP: 'top_p',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  responseFormat: 'response_format',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'parallel_tool_calls',
  reasoningEffort: 'reasoning_effort',
  endUser: 'user',
};
export const responseNames: WireNames = { ...chatNames, responseFormat: 'text.format', reasoningEffort: 'reasoning.effort', messages: 'input' };

export const messageNames: WireNames = {
  topP: 'top_p',
  topK: 'top_k',
  stop: 'stop_sequences',
  responseFormat: 'output_config.format',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'tool_choice.disable_parallel_tool_use',
  endUser: 'metadata.user_id',
};

/** Rewords a refusal of the turn for the route. The turn's message numbers do not match the items of `input`, so they are removed. */
export function toWireError(error: unknown, names: WireNames): unknown {
  if (!(error instanceof AppError)) return error;
  const { param } = error.details;
  const name = param === undefined ? undefined : names[param];
  if (name === undefined) return error;
  const message = param === 'messages' ? error.message.replace(/^messages(\[\d+\])?/, name) : error.message;
  return new AppError(error.code, message, { ...error.details, param: name });
}
