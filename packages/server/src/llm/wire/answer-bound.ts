import { ModelError, type ModelRequest, type ModelUsage } from '../model.ts';

/** What a token of an answer may take at most, on average. */
const bytesPerToken = 16;
/** Answers up to this size are never cut: limits of models are often configured too low. */
const leastBytes = 1_048_576;
/** Each tool call takes memory besides its arguments. */
export const toolCallBytes = 64;
/** A stream has a frame around each token, and may carry reasoning that is not kept. */
const wireOverhead = 64;

/** Bytes of text and tool arguments that one call may answer with, however much its provider sends. */
export function answerBytes(request: ModelRequest): number {
  return Math.min(Math.max(mostTokens(request) * bytesPerToken, leastBytes), request.maxAnswerBytes);
}

/** Bytes that a streamed answer may take on the wire. */
export function streamBytes(request: ModelRequest): number {
  return answerBytes(request) * wireOverhead;
}

/** Bytes that the body of an answer in one piece may have: the answer and what is said about it. */
export function bodyBytes(request: ModelRequest): number {
  return answerBytes(request) * 2 + 65_536;
}

export function tooLong(bytes: number): ModelError {
  return new ModelError('oversized', `the answer is longer than the ${bytes} bytes that a call like this may take`);
}

function mostTokens({ maxTokens, model }: ModelRequest): number {
  return maxTokens ?? model.maxTokens;
}

/**
 * What a provider reports is believed as far as it can be true: no more input than the model can read, no more output than
 * was asked for (reasoning is not sent) or was received. Beyond that it is an estimate.
 */
export function believable(usage: ModelUsage, request: ModelRequest, receivedBytes: number): ModelUsage {
  const input = Math.min(usage.input, request.model.contextWindow);
  const output = Math.min(usage.output, Math.max(mostTokens(request), receivedBytes));
  if (input === usage.input && output === usage.output) return usage;
  const cacheRead = Math.min(usage.cacheRead, input);
  return { input, output, cacheRead, cacheWrite: Math.min(usage.cacheWrite, input - cacheRead), estimated: true };
}
