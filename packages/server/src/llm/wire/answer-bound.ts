import { ModelError, type ModelRequest, type ModelUsage } from '../model.ts';

/** Maximum average size of a token in an answer. */
const bytesPerToken = 16;
/** Answers up to this size are never cut: models are often configured with too low a limit. */
const leastBytes = 1_048_576;
/** Memory of a tool call in addition to its arguments. */
export const toolCallBytes = 64;
/** A stream has a frame around each token, and may carry reasoning that is not kept. */
const wireOverhead = 64;

/** Returns how many bytes of text and tool arguments one call may answer with, however much its provider sends. */
export function answerBytes(request: ModelRequest): number {
  return Math.min(Math.max(mostTokens(request) * bytesPerToken, leastBytes), request.maxAnswerBytes);
}

/** Returns how many bytes a streamed answer may take on the wire. */
export function streamBytes(request: ModelRequest): number {
  return answerBytes(request) * wireOverhead;
}

/** Returns how many bytes the body of an unstreamed answer may have: the answer and its metadata. */
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
 * Limits a provider's report to plausible numbers: no more input than the model can read, no more output than
 * was requested (reasoning is not sent) or received. Beyond that it is an estimate.
 */
export function believable(usage: ModelUsage, request: ModelRequest, receivedBytes: number): ModelUsage {
  const input = Math.min(usage.input, request.model.contextWindow);
  const output = Math.min(usage.output, Math.max(mostTokens(request), receivedBytes));
  if (input === usage.input && output === usage.output) return usage;
  const cacheRead = Math.min(usage.cacheRead, input);
  return { input, output, cacheRead, cacheWrite: Math.min(usage.cacheWrite, input - cacheRead), estimated: true };
}
