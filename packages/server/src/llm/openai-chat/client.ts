import { toFragment } from '../../kernel/json-fragment.ts';
import { type ModelClient, ModelError, type ModelRequest, type ModelResult, type ModelSink } from '../model.ts';
import type { Vendor } from '../vendors.ts';
import type { AnswerReader, Upstream } from '../wire/upstream.ts';
import { believable, bodyBytes } from '../wire/answer-bound.ts';
import { estimateUsage } from '../wire/usage.ts';
import { readWholeAnswer } from '../wire/whole-answer.ts';
import { contentText, ToolCalls, toFinish, toUsage, Whole } from './answer.ts';
import { chatBody } from './request.ts';
import { ChatStream } from './stream.ts';

/** Creates a client of the OpenAI-style chat completions wire, which nearly every vendor and local server supports. */
export function createChatClient(upstream: Upstream, vendor: Vendor, fastStreams = true): ModelClient {
  let streamOptions = vendor.streamOptions;
  async function generate(request: ModelRequest, sink?: ModelSink): Promise<ModelResult> {
    const call = { path: '/chat/completions', timeoutMs: request.timeoutMs, signal: request.signal };
    const send = () =>
      upstream.post(
        { ...call, body: chatBody(request, vendor, { stream: sink !== undefined, streamOptions }) },
        answerReader(request, sink, fastStreams),
      );
    try {
      return await send();
    } catch (error) {
      // A server that refuses the field has done nothing yet; it is asked without the field from now on.
      const refused =
        streamOptions &&
        sink !== undefined &&
        error instanceof ModelError &&
        error.kind === 'bad_request' &&
        /stream_options|include_usage|include_obfuscation/.test(error.message);
      if (!refused) throw error;
      streamOptions = false;
      return await send();
    }
  }
  return { generate, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() };
}

function answerReader(request: ModelRequest, sink: ModelSink | undefined, fastStreams: boolean): AnswerReader<ModelResult> {
  return {
    maxBodyBytes: bodyBytes(request),
    stream: sink === undefined ? undefined : new ChatStream(request, sink, fastStreams),
    whole(body) {
      const result = wholeAnswer(request, body);
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
  const { choices, usage, id } = readWholeAnswer(Whole(), body, 'chat completion');
  const choice = choices[0];
  const text = contentText(choice?.message.content);
  const calls = new ToolCalls();
  choice?.message.tool_calls?.forEach((fragment, index) => calls.add({ ...fragment, index }));
  const toolCalls = calls.list(id ?? '');
  return {
    text,
    toolCalls,
    finish: toFinish(choice?.finish_reason, toolCalls),
    usage: usage === null || usage === undefined ? estimateUsage(request, text, toolCalls) : believable(toUsage(usage), request, body.length),
    ...(typeof id === 'string' && id !== '' ? { responseId: id } : {}),
  };
}
