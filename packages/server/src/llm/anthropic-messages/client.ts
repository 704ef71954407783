import { toFragment } from '../../kernel/json-fragment.ts';
import type { ModelClient, ModelRequest, ModelResult, ModelSink } from '../model.ts';
import type { AnswerReader, Upstream } from '../wire/upstream.ts';
import { believable, bodyBytes } from '../wire/answer-bound.ts';
import { estimateUsage } from '../wire/usage.ts';
import { readWholeAnswer } from '../wire/whole-answer.ts';
import { toFinish, toThinking, toUsage, Whole } from './answer.ts';
import { messagesBody } from './request.ts';
import { MessageStream } from './stream.ts';

/** Header that names the supported revision of the wire. */
export const anthropicVersion = { 'anthropic-version': '2023-06-01' };

/** A client of the Anthropic messages wire. */
export function createMessagesClient(upstream: Upstream, fastStreams = true): ModelClient {
  return {
    generate: (request, sink, key) =>
      upstream.post(
        { path: '/messages', body: messagesBody(request, sink !== undefined), timeoutMs: request.timeoutMs, signal: request.signal },
        answerReader(request, sink, fastStreams),
        key,
      ),
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}

function answerReader(request: ModelRequest, sink: ModelSink | undefined, fastStreams: boolean): AnswerReader<ModelResult> {
  return {
    maxBodyBytes: bodyBytes(request),
    stream: sink === undefined ? undefined : new MessageStream(request, sink, fastStreams),
    whole(body) {
      const result = wholeAnswer(request, body);
      for (const block of result.thinking ?? []) sink?.thinking?.block(block);
      if (sink !== undefined && result.text !== '') {
        sink.text(toFragment(result.text));
        sink.flush();
      }
      return result;
    },
    unanswered: () => estimateUsage(request, '', []),
  };
}

function wholeAnswer(request: ModelRequest, body: Buffer): ModelResult {
  const { id, content, stop_reason: stop, stop_sequence: stopSequence, usage } = readWholeAnswer(Whole(), body, 'message');
  const toolCalls = content
    .filter((block) => block.type === 'tool_use')
    .map((block) => ({ id: block.id ?? '', name: block.name ?? '', arguments: JSON.stringify(block.input ?? {}) }));
  const text = content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('');
  const thinking = content.flatMap((block) => toThinking(block) ?? []);
  const reported = toUsage(usage ?? {});
  return {
    text,
    toolCalls,
    finish: toFinish(stop),
    usage: reported.input > 0 ? believable(reported, request, body.length) : estimateUsage(request, text, toolCalls),
    responseId: id,
    ...(thinking.length > 0 && { thinking }),
    ...(stopSequence != null && { stopSequence }),
  };
}
