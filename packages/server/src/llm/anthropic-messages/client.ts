import { type ModelClient, ModelError, type ModelRequest, type ModelResult, type ModelSink } from '../model.ts';
import type { AnswerReader, Upstream } from '../wire/upstream.ts';
import { complaintOf, kindOfStreamError } from '../wire/wire-error.ts';
import { toFinish, toUsage, Whole } from './answer.ts';
import { messagesBody } from './request.ts';
import { MessageStream } from './stream.ts';

/** Header that names the revision of the wire spoken here. */
export const anthropicVersion = { 'anthropic-version': '2023-06-01' };

/** A client of the Anthropic messages wire. */
export function createMessagesClient(upstream: Upstream): ModelClient {
  return {
    generate: (request, sink) =>
      upstream.post(
        { path: '/messages', body: messagesBody(request, sink !== undefined), timeoutMs: request.timeoutMs, signal: request.signal },
        answerReader(request, sink),
      ),
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}

function answerReader(request: ModelRequest, sink: ModelSink | undefined): AnswerReader<ModelResult> {
  return {
    stream: sink === undefined ? undefined : new MessageStream(request, sink),
    whole(body) {
      const result = wholeAnswer(body);
      if (sink !== undefined && result.text !== '') {
        sink.text(JSON.stringify(result.text).slice(1, -1));
        sink.flush();
      }
      return result;
    },
  };
}

function wholeAnswer(body: Buffer): ModelResult {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    throw new ModelError('bad_response', `expected JSON, got ${body.length === 0 ? 'nothing' : 'something else'}`);
  }
  const answer = Whole.safeParse(value);
  if (!answer.success) {
    const complaint = complaintOf(value);
    if (complaint.message !== '') throw new ModelError(kindOfStreamError(complaint), complaint.message);
    throw new ModelError('bad_response', `the answer is not a message (${answer.error.issues[0]?.path.join('.') ?? ''})`);
  }
  const { id, content, stop_reason: stop, usage } = answer.data;
  const toolCalls = content
    .filter((block) => block.type === 'tool_use')
    .map((block) => ({ id: block.id ?? '', name: block.name ?? '', arguments: JSON.stringify(block.input ?? {}) }));
  return {
    text: content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join(''),
    toolCalls,
    finish: toFinish(stop),
    usage: toUsage(usage),
    responseId: id,
  };
}
